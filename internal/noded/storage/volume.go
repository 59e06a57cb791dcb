package storage

import "path/filepath"

// Volume is where in a rank's scratch space one of its own directories lies that mounts
// show by name.
func Volume(scratch, name string) string { return filepath.Join(scratch, "volumes", name) }
