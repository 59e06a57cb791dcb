package oci

import (
	"path/filepath"

	"gbatch/oci/logs"
	"gbatch/oci/result"
)

// OpenLog opens the log of the container in dir.
func OpenLog(dir string) (*logs.Log, error) {
	return logs.Open(filepath.Join(dir, dirLog), func() bool { return exists(filepath.Join(dir, result.FileExit)) })
}
