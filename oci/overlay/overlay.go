package overlay

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"gbatch/oci/userns"
)

// MaxLayers is how many layers an image may have. The kernel takes 500 by the
// newer way of mounting; a bound below that leaves room for its own.
const MaxLayers = 400

// maxFDLayers is how many layers fit the single page of options of the older
// way, each as "/proc/self/fd/N", with two long paths. Docker makes 127 at most.
const maxFDLayers = 128

// Stack is layers with a writable directory over them.
type Stack struct {
	Lower  []string // lowest first
	User   *os.File // user namespace in whose ids the layers show; nil: in their own
	Upper  string
	Work   string
	Once   bool // nothing is read of Upper once it is unmounted, nor is it mounted again
	Target string
}

// volatile is the option by which nothing has to be on the disk when the mount goes, or when
// a program asks for it: what is removed then would be written first. The kernel mounts such
// directories once.
const volatile = "volatile"

// Mount mounts a stack on its target. Device nodes in the image do not work
// there: the store keeps what images bring, and only the container's own /dev
// has devices.
func Mount(m Stack) error {
	if len(m.Lower) == 0 || len(m.Lower) > MaxLayers {
		return fmt.Errorf("mount root file system: image has %d layers, want 1 to %d", len(m.Lower), MaxLayers)
	}
	mount := mountLayers
	if m.User != nil {
		mount = mountShifted
	}
	if err := mount(m); err != nil {
		return fmt.Errorf("mount root file system: %w", err)
	}
	return nil
}

func mountLayers(m Stack) error {
	err := mountNew(m)
	if errors.Is(err, errNoLowerdirPlus) {
		err = mountOld(m)
	}
	return err
}

// mountShifted is mountLayers of layers that show in the ids of m.User.
func mountShifted(m Stack) error {
	trees, err := shiftLayers(m)
	defer closeTrees(trees)
	if err != nil {
		return err
	}
	named := m
	named.Lower = nil
	for _, t := range trees {
		named.Lower = append(named.Lower, handleName(int(t.Fd())))
	}
	if err = mountLayers(named); !errors.Is(err, unix.EINVAL) {
		return err
	}
	if err := unmark(m); err != nil {
		return err
	}
	return mountAttached(m, trees)
}

// unmark takes away the mark by which the kernel mounts directories once: it leaves it at a
// mount that it refuses, too.
func unmark(m Stack) error { return os.RemoveAll(filepath.Join(m.Work, "work", "incompat")) }

// mountAttached is for kernels before 6.15, which take no layer from a mount
// that is nowhere to be seen: each shows beside the target while the stack is mounted. Not
// over the layer itself, which another stack of this thread's may have, too.
func mountAttached(m Stack, trees []*os.File) (err error) {
	seen := m
	seen.Lower = nil
	for i, t := range trees {
		at := fmt.Sprintf("%s.layer.%d", m.Target, i)
		if err := os.Mkdir(at, 0o700); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.Remove(at)) }()
		if err := unix.MoveMount(int(t.Fd()), "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return fmt.Errorf("show layer %s: %w", m.Lower[i], err)
		}
		defer func() { err = errors.Join(err, unix.Unmount(at, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)) }()
		seen.Lower = append(seen.Lower, at)
	}
	return mountLayers(seen)
}

// shiftLayers opens each layer by a mount that shows it in the container's ids.
func shiftLayers(m Stack) ([]*os.File, error) {
	var trees []*os.File
	for _, layer := range m.Lower {
		tree, err := userns.Shift(layer, m.User)
		if err != nil {
			return trees, err
		}
		trees = append(trees, tree)
	}
	return trees, nil
}

func closeTrees(trees []*os.File) {
	for _, t := range trees {
		t.Close()
	}
}

// errNoLowerdirPlus says that the kernel is older than 6.8.
var errNoLowerdirPlus = errors.New("kernel does not add overlay layers one by one")

// mountNew adds one layer at a time, so no option string can overflow.
func mountNew(m Stack) error {
	fs, err := unix.Fsopen("overlay", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return errNoLowerdirPlus
	}
	defer unix.Close(fs)
	// Before 6.5 any option is taken, and refused only by the mount at the end.
	if unix.FsconfigSetString(fs, "gbatch-unknown", "1") == nil {
		return errNoLowerdirPlus
	}
	var names shortNames
	defer names.close()
	for i := len(m.Lower) - 1; i >= 0; i-- {
		name, err := names.of(m.Lower[i])
		if err != nil {
			return err
		}
		err = unix.FsconfigSetString(fs, "lowerdir+", name)
		if i == len(m.Lower)-1 && errors.Is(err, unix.EINVAL) {
			return errNoLowerdirPlus
		}
		if err != nil {
			return fmt.Errorf("add layer %s: %w", m.Lower[i], err)
		}
	}
	for _, opt := range [][2]string{{"upperdir", m.Upper}, {"workdir", m.Work}, {"source", "gbatch"}} {
		name, err := names.of(opt[1])
		if err == nil {
			err = unix.FsconfigSetString(fs, opt[0], name)
		}
		if err != nil {
			return fmt.Errorf("set %s %s: %w", opt[0], opt[1], err)
		}
	}
	if m.Once {
		if err := unix.FsconfigSetFlag(fs, volatile); err != nil {
			return fmt.Errorf("set %s: %w", volatile, err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return explain(err)
	}
	mnt, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NODEV)
	if err != nil {
		return explain(err)
	}
	defer unix.Close(mnt)
	return unix.MoveMount(mnt, "", unix.AT_FDCWD, m.Target, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// maxOption is the longest value that fsconfig takes as a string.
const maxOption = 255

// shortNames keeps open what was named by a handle, as its own path is too long.
type shortNames []int

func (s *shortNames) of(path string) (string, error) {
	if len(path) <= maxOption {
		return path, nil
	}
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", fmt.Errorf("open %s: %w", path, err)
	}
	*s = append(*s, fd)
	return handleName(fd), nil
}

// handleName is a short path to what a handle is open on.
func handleName(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

func (s *shortNames) close() {
	for _, fd := range *s {
		unix.Close(fd)
	}
}

// mountOld names each layer by a short path to an open handle, as all
// options together have to fit one page.
func mountOld(m Stack) error {
	if len(m.Lower) > maxFDLayers {
		return fmt.Errorf("image has %d layers; a kernel before 6.8 mounts at most %d", len(m.Lower), maxFDLayers)
	}
	var names []string
	for i := len(m.Lower) - 1; i >= 0; i-- {
		fd, err := unix.Open(m.Lower[i], unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("open layer %s: %w", m.Lower[i], err)
		}
		defer unix.Close(fd)
		names = append(names, handleName(fd))
	}
	opts := "lowerdir=" + strings.Join(names, ":") + ",upperdir=" + escapeOption(m.Upper) + ",workdir=" + escapeOption(m.Work)
	err := error(unix.EINVAL)
	if m.Once {
		err = unix.Mount("gbatch", m.Target, "overlay", unix.MS_NODEV, opts+","+volatile)
	}
	if errors.Is(err, unix.EINVAL) { // kernels before 5.10 do not know it
		if err := unmark(m); err != nil {
			return err
		}
		err = unix.Mount("gbatch", m.Target, "overlay", unix.MS_NODEV, opts)
	}
	if err != nil {
		return explain(err)
	}
	return nil
}

// escapeOption protects what separates overlay's options.
func escapeOption(path string) string {
	return strings.NewReplacer(`\`, `\\`, ",", `\,`, ":", `\:`).Replace(path)
}

// explain adds the reason that the kernel only logs.
func explain(err error) error {
	switch {
	case errors.Is(err, unix.ENODEV):
		return fmt.Errorf("%w: this kernel has no overlayfs; run: modprobe overlay", err)
	case errors.Is(err, unix.EINVAL):
		return fmt.Errorf("%w: often because the scratch directory lies on an overlay, NFS or other file system that cannot hold the upper layer", err)
	}
	return err
}
