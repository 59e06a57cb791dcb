package image

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// What an image may take of the disk is what its limit and the disk leave. A
// worker asks for room before it writes, slice by slice, so that pulls at the
// same time are never promised the same room, and a disk that runs full runs
// full by other hands. What a worker got last counts as not yet written.

// disk is the store's disk, of which it knows what it has promised to whom.
type disk struct {
	dir   string // on it, to look and to try
	least int64  // bytes to be left free
	limit int64  // bytes of one image

	mu       sync.Mutex
	promises map[*origin]promised // what may not be written yet

	shed func() // gives back what is kept for others only
}

func newDisk(dir string, config Config) *disk {
	return &disk{dir: dir, least: config.MinFree, limit: config.MaxUnpackedBytes, promises: map[*origin]promised{}, shed: func() {}}
}

type promised struct {
	bytes, entries int64 // the last slice
	total          int64 // of this pull
}

// roomEntries is how many files go with a slice.
const roomEntries = roomSlice / 4096

// promise gives a pull a slice of the disk that holds at least as much, or
// says whose fault it is that there is none.
func (d *disk) promise(o *origin, bytes, entries int64) (int64, int64, error) {
	if bytes < 0 || entries < 0 {
		return 0, 0, errNoAnswer
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.promises[o]
	if bytes > d.limit-p.total {
		return 0, 0, tooBig(d.limit)
	}
	delete(d.promises, o) // it has written that, or it would not ask
	free, inodes, err := d.leftLocked()
	if err == nil && (free < 0 || bytes > free) {
		d.shed()
		free, inodes, err = d.leftLocked()
	}
	if err != nil {
		return 0, 0, classifyLocal(err)
	}
	if free < 0 && p.total == 0 {
		return 0, 0, fail(DiskFull, "the node's image store is full")
	}
	if bytes > free || entries > inodes {
		return 0, 0, fail(Unsupported, "it does not fit on this node, which has %d MiB and %d files left for it", max(free+p.total, 0)>>20, max(inodes, 0))
	}
	p.bytes = min(max(bytes, roomSlice), free, d.limit-p.total)
	p.entries = min(max(entries, roomEntries), inodes)
	p.total += p.bytes
	d.promises[o] = p
	return p.bytes, p.entries, nil
}

// leftLocked is what is free and was not promised.
func (d *disk) leftLocked() (bytes, inodes int64, err error) {
	bytes, inodes, err = d.free()
	for _, p := range d.promises {
		bytes -= p.bytes
		inodes -= p.entries
	}
	return bytes, inodes, err
}

// spare is how many bytes are free and not promised; 0 where that cannot be told.
func (d *disk) spare() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	bytes, _, err := d.leftLocked()
	if err != nil {
		return 0
	}
	return bytes
}

// unpromise takes back what a pull that is over did not use.
func (d *disk) unpromise(o *origin) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.promises, o)
}

// free is how much of the disk images may take yet.
func (d *disk) free() (bytes, inodes int64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(d.dir, &st); err != nil {
		return 0, 0, os.NewSyscallError("statfs", err)
	}
	inodes = 1 << 40 // some file systems have no bound
	if st.Files > 0 {
		inodes = int64(st.Ffree) - minFreeInodes
	}
	return int64(st.Bavail)*st.Bsize - d.least, inodes, nil
}

// evidence looks whether the store's disk is at fault, by itself and with
// nothing of any image: a complaint while unpacking may be of the image's making.
func (d *disk) evidence() *PullError {
	free, inodes, err := d.free()
	if err == nil && (free < 0 || inodes < 0) {
		return fail(DiskFull, "the node's image store is full")
	}
	if err == nil {
		err = d.try()
	}
	if err == nil {
		return nil
	}
	e := classifyLocal(err)
	if e.Kind != DiskFull {
		e = wrap(Internal, err, "the node's image store cannot be written: %v", err)
	}
	return e
}

// try writes a file as a layer's files are written, and more durably.
func (d *disk) try() error {
	f, err := os.CreateTemp(d.dir, "try-")
	if err != nil {
		return fmt.Errorf("make a file: %w", err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(make([]byte, 64<<10))
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
