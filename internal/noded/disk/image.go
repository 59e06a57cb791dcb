package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"

	"gbatch/internal/sparse"
)

// A container's image is a file system of its own in a file of the size that it
// may write, on a loop device, mounted where its directory is. The file takes
// what was written; it is made by a copy of one that is empty. There is no
// journal, as after a crash of the machine nothing of the container runs.

// image is where the file of a directory is.
func image(dir string) string { return dir + ".img" }

// blank is the empty one that others are copies of.
func (d *Disk) blank() string { return filepath.Join(d.dir, ".blank") }

// makeBlank makes the empty file system for containers that ask for no other.
func (d *Disk) makeBlank(size int64) error {
	if st, err := os.Stat(d.blank()); err == nil && st.Size() == imageSize(size) {
		return nil
	}
	tmp := d.blank() + ".new"
	if err := format(tmp, size); err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	return os.Rename(tmp, d.blank())
}

// imageSize is how large a file system is that has room for so many bytes.
func imageSize(bytes int64) int64 { return (bytes + bytes/64 + 1<<20) &^ 4095 }

// format makes an empty file system in a new file.
func format(file string, size int64) error {
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Truncate(imageSize(size)); err != nil {
		return err
	}
	var text bytes.Buffer
	mkfs := exec.Command("mkfs.ext4", "-q", "-F", "-b", "4096", "-m", "0", "-i", "16384", "-O", "^has_journal,^resize_inode,^metadata_csum,uninit_bg",
		"-G", "4096", "-E", "lazy_itable_init=1,nodiscard,root_owner=0:0", file)
	mkfs.Stdout, mkfs.Stderr = &text, &text
	if err := mkfs.Run(); err != nil {
		return fmt.Errorf("mkfs.ext4 (of e2fsprogs): %w: %s", err, bytes.TrimSpace(text.Bytes()))
	}
	return nil
}

// mountImage gives a directory a file system of so many bytes.
func (d *Disk) mountImage(dir string, size int64) error {
	file := image(dir)
	err := os.Remove(file) // of an earlier try
	if err == nil || errors.Is(err, os.ErrNotExist) {
		if st, serr := os.Stat(d.blank()); serr == nil && st.Size() == imageSize(size) {
			err = copySparse(d.blank(), file)
		} else {
			err = format(file, size)
		}
	}
	if err == nil {
		err = attach(file, dir)
	}
	if err == nil {
		err = os.Chmod(dir, 0o711)
	}
	if err != nil {
		return errors.Join(err, dropImage(dir))
	}
	return nil
}

// remountImage mounts what a container wrote before the machine's restart: its
// outputs may be among it.
func remountImage(dir string) error {
	_ = exec.Command("e2fsck", "-f", "-y", image(dir)).Run() // what it could not mend, mount refuses
	return attach(image(dir), dir)
}

// copySparse copies what was written of a file.
func copySparse(from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer dst.Close()
	st, err := src.Stat()
	if err != nil {
		return err
	}
	if err := dst.Truncate(st.Size()); err != nil {
		return err
	}
	for from, until := range sparse.Written(src, st.Size()) {
		if _, err := io.Copy(io.NewOffsetWriter(dst, from), io.NewSectionReader(src, from, until-from)); err != nil {
			return err
		}
	}
	return nil
}

// attach mounts a file by a loop device, which goes with the mount.
func attach(file, dir string) error {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	loop, err := loopDevice(f)
	if err != nil {
		return err
	}
	defer loop.Close()
	if err := unix.Mount(loop.Name(), dir, "ext4", unix.MS_NODEV|unix.MS_NOSUID|unix.MS_NOATIME, "nodiscard,noinit_itable"); err != nil {
		return fmt.Errorf("mount %s on %s: %w", file, dir, err)
	}
	return nil
}

// takes is how much of the disk a directory's file system has. It keeps what was removed from it until
// it is trimmed, as by itself it would give back each block when that is freed, and wait for it: seven
// times for a container that wrote nothing. So that is done here, where it is much.
func takes(dir string) (int64, error) {
	n, err := allocated(dir)
	if err != nil {
		return 0, err
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, fmt.Errorf("look at %s: %w", dir, err)
	}
	if n-int64(fs.Blocks-fs.Bfree)*fs.Bsize < untrimmed {
		return n, nil
	}
	if err := trim(dir); err != nil && !errors.Is(err, unix.EOPNOTSUPP) {
		return 0, err
	}
	return allocated(dir)
}

// untrimmed is how much it may keep, with its own tables, of which a new one has less than a tenth of that.
const untrimmed = 16 << 20

func allocated(dir string) (int64, error) {
	var st unix.Stat_t
	if err := unix.Stat(image(dir), &st); err != nil {
		return 0, fmt.Errorf("look at %s: %w", image(dir), err)
	}
	return st.Blocks * 512, nil
}

// trim gives what is free on a directory's file system back to the disk.
func trim(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	all := struct{ start, length, least uint64 }{length: math.MaxUint64}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), fiTrim, uintptr(unsafe.Pointer(&all))); errno != 0 {
		return fmt.Errorf("trim %s: %w", dir, errno)
	}
	return nil
}

const fiTrim = 0xc0185879 // FITRIM

// loopTries bounds how often another process may be faster to take a device.
const loopTries = 100

func loopDevice(f *os.File) (*os.File, error) {
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer control.Close()
	config := unix.LoopConfig{Fd: uint32(f.Fd()), Size: 4096}
	config.Info.Flags = unix.LO_FLAGS_AUTOCLEAR | unix.LO_FLAGS_DIRECT_IO
	copy(config.Info.File_name[:len(config.Info.File_name)-1], f.Name())
	for try := 0; ; try++ {
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("find a loop device: %w", err)
		}
		loop, err := os.OpenFile(fmt.Sprintf("/dev/loop%d", n), os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		if err = unix.IoctlLoopConfigure(int(loop.Fd()), &config); err == nil {
			return loop, nil
		}
		loop.Close()
		if !errors.Is(err, unix.EBUSY) || try == loopTries {
			return nil, fmt.Errorf("set up %s: %w", loop.Name(), err)
		}
	}
}

// isMounted says whether a directory is another file system than the one above.
func isMounted(dir string) bool {
	var above, here unix.Stat_t
	return unix.Stat(filepath.Dir(dir), &above) == nil && unix.Stat(dir, &here) == nil && above.Dev != here.Dev
}

// dropImage removes a directory's file system, if it has one, with all in it.
func dropImage(dir string) error {
	if err := unix.Unmount(dir, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("unmount %s: %w", dir, err)
	}
	if err := os.Remove(image(dir)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// tryImages tries whether containers can have file systems of their own below
// a directory. The error says what the machine lacks.
func (d *Disk) tryImages(size int64) error {
	if err := d.makeBlank(size); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(d.dir, ".try-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := d.mountImage(dir, size); err != nil {
		return err
	}
	d.empty, err = freeOf(dir)
	return errors.Join(err, dropImage(dir))
}
