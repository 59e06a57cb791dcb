package store

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// lockingDisk is the disk, on which who has a database open locks its directory too. Pebble's lock is on a file
// there: whoever removes that would let a second program in. The directory stays the same as long as anything in it is used.
type lockingDisk struct{ vfs.FS }

// Lock is called for the lock's file of a database. It fails with EAGAIN where another one has it, as pebble's does.
func (d lockingDisk) Lock(name string) (io.Closer, error) {
	dir, err := lockDir(filepath.Dir(name))
	if err != nil {
		return nil, err
	}
	file, err := d.FS.Lock(name)
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return locks{file, dir}, nil
}

// Unwrap gives the disk to those who ask what is below.
func (d lockingDisk) Unwrap() vfs.FS { return d.FS }

// lockDir locks a directory until it is closed. Where the file system has no such locks, the file's alone counts.
func lockDir(path string) (*os.File, error) {
	d, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(d.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

type locks struct{ file, dir io.Closer }

func (l locks) Close() error { return errors.Join(l.file.Close(), l.dir.Close()) }
