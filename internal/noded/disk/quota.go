package disk

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// project is the number by which a file system counts what lies in a tree: each
// file that is made in a directory with it has it too. 0 is none.
type project uint32

// The numbers that are ours, out of those that a file system has.
const (
	firstProject = 0x67620000
	projects     = 1 << 16
)

// fsxattr is the kernel's struct of the same name.
type fsxattr struct {
	Flags, ExtentSize, Extents, Project, CowExtentSize uint32

	_ [8]byte
}

// What golang.org/x/sys/unix lacks of <linux/fs.h> and <linux/quota.h>.
const (
	fsGetXattr   = 0x801c581f // FS_IOC_FSGETXATTR
	fsSetXattr   = 0x401c5820 // FS_IOC_FSSETXATTR
	flagInherit  = 0x200      // FS_XFLAG_PROJINHERIT
	getQuota     = 0x800007<<8 | projectQuota
	setQuota     = 0x800008<<8 | projectQuota
	nextQuota    = 0x800009<<8 | projectQuota
	projectQuota = 2
	limitsValid  = 1 | 4 // QIF_BLIMITS, QIF_ILIMITS
	quotaBlock   = 1024  // in which limits are counted, but not what is used
)

// dqblk is struct if_nextdqblk, which begins as struct if_dqblk.
type dqblk struct {
	HardBlocks, SoftBlocks, Bytes  uint64
	HardInodes, SoftInodes, Inodes uint64
	GraceBlocks, GraceInodes       uint64
	Valid, ID                      uint32
}

func ioctlXattr(dir *os.File, request uintptr, x *fsxattr) error {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, dir.Fd(), request, uintptr(unsafe.Pointer(x)))
	if errno != 0 {
		return errno
	}
	return nil
}

// projectAt is the number that a directory gives to what is made in it; 0: none.
func projectAt(path string) project {
	dir, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer dir.Close()
	var x fsxattr
	if ioctlXattr(dir, fsGetXattr, &x) != nil || x.Flags&flagInherit == 0 {
		return 0
	}
	return project(x.Project)
}

// setProjectAt has all that is made in a directory counted by a number.
func setProjectAt(path string, id project) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	var x fsxattr
	if err = ioctlXattr(dir, fsGetXattr, &x); err == nil {
		x.Flags |= flagInherit
		x.Project = uint32(id)
		err = ioctlXattr(dir, fsSetXattr, &x)
	}
	if err != nil {
		return fmt.Errorf("set project of %s: %w", path, err)
	}
	return nil
}

func quotactl(dir *os.File, command uintptr, id project, q *dqblk) error {
	_, _, errno := unix.Syscall6(unix.SYS_QUOTACTL_FD, dir.Fd(), command, uintptr(id), uintptr(unsafe.Pointer(q)), 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// count is what a project uses, and at most may.
func count(dir *os.File, id project) (dqblk, error) {
	var q dqblk
	err := quotactl(dir, getQuota, id, &q)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) {
		return dqblk{}, nil // nobody has had it
	}
	if err != nil {
		return q, fmt.Errorf("read quota: %w", err)
	}
	return q, nil
}

// bound bounds a project; 0 takes the bounds back.
func bound(dir *os.File, id project, bytes, files int64) error {
	q := dqblk{HardBlocks: uint64(bytes) / quotaBlock, HardInodes: uint64(files), Valid: limitsValid}
	if err := quotactl(dir, setQuota, id, &q); err != nil {
		return fmt.Errorf("set quota: %w", err)
	}
	return nil
}
