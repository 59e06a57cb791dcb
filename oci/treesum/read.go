package treesum

import (
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// bufferSize is how much of a file is read at once: a multiple of all blocks that disks have.
const bufferSize = 1 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// open opens what has a name in a directory, and nothing that a link leads to. It waits for nobody.
func open(dir int, name string, flags int) (int, error) {
	return unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC|flags, 0)
}

// list is the names in an open directory, sorted.
func list(fd int) ([]string, error) {
	again, err := open(fd, ".", unix.O_DIRECTORY) // as the list closes what it reads
	if err != nil {
		return nil, err
	}
	d := os.NewFile(uintptr(again), "")
	defer d.Close()
	names, err := d.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

// file is what a file holds, as its size and the sum of its bytes, and its attributes.
func (w *walk) file(dir int, name string, st *unix.Stat_t) (holds string, attrs []byte, err error) {
	fd, err := open(dir, name, 0)
	if err != nil {
		return "", nil, err
	}
	defer unix.Close(fd)
	if attrs, err = attributes(fd); err != nil {
		return "", nil, err
	}
	if st.Nlink > 1 {
		if holds, ok := w.linked[st.Ino]; ok {
			return holds, attrs, nil
		}
	}
	sum, err := w.bytes(fd, w.how.Disk && direct(fd, true) == nil)
	if err != nil {
		return "", nil, err
	}
	holds = fmt.Sprintf("%d %08x", st.Size, sum)
	if st.Nlink > 1 {
		w.linked[st.Ino] = holds
	}
	return holds, attrs, nil
}

// bytes is the sum of all bytes of an open file. What the file system cannot read past the memory,
// as often behind the last whole block, is read by it.
func (w *walk) bytes(fd int, past bool) (sum uint32, err error) {
	for off := int64(0); ; {
		n, err := unix.Pread(fd, w.buf, off)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EINVAL) && past:
			if past, err = false, direct(fd, false); err != nil {
				return 0, err
			}
			continue
		case err != nil || n == 0:
			return sum, err
		}
		sum = crc32.Update(sum, castagnoli, w.buf[:n])
		off += int64(n)
		if err := w.pace(int64(n)); err != nil {
			return 0, err
		}
	}
}

// direct has an open file be read from the disk, past the kernel's memory.
func direct(fd int, on bool) error {
	flags := 0
	if on {
		flags = unix.O_DIRECT
	}
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETFL, flags)
	return err
}
