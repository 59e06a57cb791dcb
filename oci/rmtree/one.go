package rmtree

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Empty removes a directory that is empty, or gone.
func Empty(dir string) error {
	err := unix.Rmdir(dir)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return fmt.Errorf("remove %s: %w", dir, err)
}

// File removes a file, if it is there.
func File(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
