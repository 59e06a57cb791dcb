package oci

import (
	"path/filepath"

	"gbatch/oci/logs"
	"gbatch/oci/result"
)

// OpenLog opens the log of the container in dir.
func OpenLog(dir string) (*logs.Log, error) {
	at, ended := filepath.Join(dir, dirLog), func() bool { return exists(filepath.Join(dir, result.FileExit)) }
	l, err := logs.Open(at, ended)
	if err == nil {
		return l, nil
	}
	if e, failed := result.Read(dir); failed == nil && e.Silent() {
		return logs.OpenLater(at, ended), nil // it was a guest, and has none
	}
	return nil, err
}
