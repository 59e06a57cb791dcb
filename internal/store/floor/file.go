package floor

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// slotSize is the room of one mark in the file. Marks go to two slots in turn, so
// that one is whole whatever happens while the other is written.
const slotSize = 512

// syncPause is the least time between two syncs of the file. Up to this much of
// what was committed can be above the floor after a loss of power.
const syncPause = 100 * time.Millisecond

// File is the file with the floor. One goroutine at a time calls its methods.
type File struct {
	f     vfs.File
	dirty chan struct{} // has a mark that is not synced
	stop  chan struct{}
	sync  sync.WaitGroup // the goroutine that syncs
}

// Read gives the last mark in a file. False: there is no file.
func Read(fs vfs.FS, path string) (Mark, bool, error) {
	if _, err := fs.Stat(path); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return Mark{}, false, nil
		}
		return Mark{}, false, err
	}
	f, err := fs.Open(path)
	if err != nil {
		return Mark{}, false, err
	}
	defer f.Close()
	b := make([]byte, 2*slotSize)
	if n, err := f.ReadAt(b, 0); err != nil && !errors.Is(err, io.EOF) {
		return Mark{}, false, err
	} else if n < markSize {
		return Mark{}, false, fmt.Errorf("%s is cut off", path)
	}
	first, err1 := Decode(b[:markSize])
	second, err2 := Decode(b[slotSize : slotSize+markSize])
	switch {
	case err1 != nil && err2 != nil:
		return Mark{}, false, fmt.Errorf("read %s: %w", path, err1)
	case err1 != nil || err2 == nil && second.Count > first.Count:
		return second, true, nil
	}
	return first, true, nil
}

// Open opens the file and makes it say m, whatever it said before. Where there is none
// it appears as a whole or not at all.
func Open(fs vfs.FS, path string, m Mark) (*File, error) {
	if _, err := fs.Stat(path); errors.Is(err, os.ErrNotExist) {
		if err := create(fs, path, m); err != nil {
			return nil, fmt.Errorf("make %s: %w", path, err)
		}
	}
	f, err := fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	o := &File{f: f, dirty: make(chan struct{}, 1), stop: make(chan struct{})}
	err = errors.Join(o.write(m, 0), o.write(m, 1), f.Sync(), syncDir(fs, filepath.Dir(path)))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("write %s: %w", path, err), f.Close())
	}
	o.sync.Go(o.keepSynced)
	return o, nil
}

func create(fs vfs.FS, path string, m Mark) error {
	f, err := fs.Create(path+".new", vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	b := make([]byte, slotSize+markSize)
	copy(b, m.Encode())
	copy(b[slotSize:], m.Encode())
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return errors.Join(fs.Rename(path+".new", path), syncDir(fs, filepath.Dir(path)))
}

// Sync has what was noted survive a loss of power.
func (o *File) Sync() error { return o.f.SyncData() }

// Note writes a mark. When it returns, the mark survives the death of this
// process; a moment later, a loss of power too.
func (o *File) Note(m Mark) error {
	if err := o.write(m, m.Count%2); err != nil {
		return fmt.Errorf("note the count of commits: %w", err)
	}
	select {
	case o.dirty <- struct{}{}:
	default: // somebody said so before
	}
	return nil
}

func (o *File) write(m Mark, slot uint64) error {
	_, err := o.f.WriteAt(m.Encode(), int64(slot*slotSize))
	return err
}

func (o *File) keepSynced() {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-o.stop:
			return
		case <-pause.C:
		}
		select {
		case <-o.stop:
			return
		case <-o.dirty:
			_ = o.f.SyncData() // what fails here is above the floor after a loss of power, as is what comes next
		}
		pause.Reset(syncPause)
	}
}

// Close syncs and closes the file.
func (o *File) Close() error {
	close(o.stop)
	o.sync.Wait()
	return errors.Join(o.f.SyncData(), o.f.Close())
}

func syncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
