package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"gbatch/oci/rmtree"
)

// To mount a file system and to unmount it again costs as much as to start a
// container takes beside. So those that were made for containers without a
// reservation are used again, one container after the other: each has a place of
// its own, a slot, and a rank's directory is a link to it. What is used again is
// as empty as it was made, or it is removed.

// slotPrefix begins their names.
const slotPrefix = ".slot-"

// maxSlots is how many wait at most.
const maxSlots = 16

// largeSlot is what one may not take of the disk that waits.
const largeSlot = 64 << 20

// slotOf is the slot that a rank's directory is a link to, or the directory itself.
func slotOf(dir string) string {
	name, err := os.Readlink(dir)
	if err != nil {
		return dir
	}
	return filepath.Join(filepath.Dir(dir), filepath.Base(name))
}

// takeImage gives a rank's directory a file system of so many bytes, and says
// where that is.
func (d *Disk) takeImage(dir string, size int64) (string, error) {
	if size != d.usual {
		if err := os.Mkdir(dir, 0o711); err != nil {
			return "", err
		}
		return dir, d.mountImage(dir, size)
	}
	for slot, ok := d.popSlot(); ok; slot, ok = d.popSlot() {
		if now, err := freeOf(slot); err == nil && now == d.empty {
			return slot, linkSlot(slot, dir)
		}
		if err := dropAll(slot); err != nil { // something of it is held yet
			return "", err
		}
	}
	made, err := os.MkdirTemp(d.dir, slotPrefix)
	if err == nil {
		err = d.mountImage(made, size)
	}
	if err == nil {
		err = linkSlot(made, dir)
	}
	return made, err
}

// linkSlot makes a slot a rank's directory, or removes it.
func linkSlot(slot, dir string) error {
	if err := os.Symlink(filepath.Base(slot), dir); err != nil {
		return errors.Join(err, dropAll(slot))
	}
	return nil
}

// giveSlot keeps a slot for another rank, emptied.
func (d *Disk) giveSlot(dir string) error {
	err := rmtree.Remove(filepath.Join(dir, "box"))
	var n int64
	if err == nil {
		n, err = takes(dir)
	}
	if err == nil && n < largeSlot && !d.spoilt.Load() {
		select {
		case d.slots <- dir:
			return nil
		default:
		}
	}
	return dropAll(dir)
}

func (d *Disk) popSlot() (string, bool) {
	select {
	case slot := <-d.slots:
		return slot, true
	default:
		return "", false
	}
}

// Close removes what waits for further ranks.
func (d *Disk) Close() error {
	var err error
	for slot, ok := d.popSlot(); ok; slot, ok = d.popSlot() {
		err = errors.Join(err, dropAll(slot))
	}
	return err
}

// freeOf is what is free on the file system of a directory.
func freeOf(dir string) (amount, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return amount{}, fmt.Errorf("look at %s: %w", dir, err)
	}
	return amount{int64(fs.Bfree), int64(fs.Ffree)}, nil
}
