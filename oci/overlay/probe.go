package overlay

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"gbatch/oci/userns"
)

// ProbeUsers tries whether this machine can make a container's root somebody
// else than its own: with image layers in one directory and what containers
// write in another. The error says what the kernel or a file system lacks.
func ProbeUsers(layers, scratch string) error {
	const id = 0x7ffe0000 // nobody's
	ns, err := userns.New(userns.MapOf(userns.Owner{UID: id, GID: id, First: id}), false)
	if err != nil {
		return err
	}
	defer ns.Close()
	lower, err := os.MkdirTemp(layers, ".probe-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(lower)
	top, err := os.MkdirTemp(scratch, ".probe-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(top)
	m := Stack{Lower: []string{lower}, User: ns.User, Upper: filepath.Join(top, "u"), Work: filepath.Join(top, "w"), Target: filepath.Join(top, "t")}
	for _, dir := range []string{m.Upper, m.Work, m.Target} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(lower, "f"), nil, 0o600); err != nil {
		return err
	}
	done := make(chan error)
	go func() { done <- probeMount(m, id) }() // its thread ends with it
	return <-done
}

// probeMount mounts where nobody else sees it, and looks whose a file is.
func probeMount(m Stack, id uint32) error {
	runtime.LockOSThread() // and no unlock: the mounts go with the thread
	if err := errors.Join(unix.Unshare(unix.CLONE_NEWNS), unix.Mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, "")); err != nil {
		return fmt.Errorf("separate mounts from the host: %w", err)
	}
	if err := Mount(m); err != nil {
		return err
	}
	st, err := os.Stat(filepath.Join(m.Target, "f"))
	if err == nil && st.Sys().(*syscall.Stat_t).Uid != id {
		err = errors.New("a file of root's in an image stays root's")
	}
	return errors.Join(err, unix.Unmount(m.Target, unix.MNT_DETACH))
}
