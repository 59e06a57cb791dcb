package storage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"gbatch/internal/job"
)

// Volume is where in a rank's scratch space one of its own directories lies that mounts
// show by name.
func Volume(scratch, name string) string { return filepath.Join(scratch, "volumes", name) }

// Volumes are the rank's own directories, which its mounts show by name.
type Volumes struct {
	Scratch, Dir string // those in memory are in Dir
	Memory       int64  // of the rank
	UID, GID     int    // of the container's root

	at map[string]string
}

// Make makes those that mounts name: in the rank's scratch space, or in memory.
func (v *Volumes) Make(mounts []job.Storage) error {
	v.at = map[string]string{}
	for _, m := range mounts {
		if m.HostPath != job.ScratchHostPath || v.at[m.Volume] != "" {
			continue
		}
		at := Volume(v.Scratch, m.Volume)
		if m.OfMemory {
			at = filepath.Join(v.Dir, "v-"+m.Volume)
			if err := MakeMemory(at, "0777", m.Bytes(v.Memory)); err != nil {
				return err
			}
		} else if err := os.MkdirAll(at, 0o700); err != nil {
			return fmt.Errorf("make volume: %w", err)
		}
		if err := errors.Join(os.Chown(at, v.UID, v.GID), os.Chmod(at, 0o777)); err != nil {
			return fmt.Errorf("make volume: %w", err)
		}
		v.at[m.Volume] = at
	}
	return nil
}

// At is where one of them lies.
func (v *Volumes) At(name string) string { return v.at[name] }

// WriteFile writes a file of a job's as root of its container has it.
func WriteFile(at string, f job.File, uid, gid int) error {
	mode := os.FileMode(0o644)
	if f.Program {
		mode = 0o755
	}
	if err := errors.Join(os.WriteFile(at, []byte(f.Text), mode), os.Chown(at, uid, gid), os.Chmod(at, mode)); err != nil {
		return fmt.Errorf("write %s: %w", f.Path, err)
	}
	return nil
}
