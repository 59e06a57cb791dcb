package overlay_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"gbatch/oci/overlay"
	"gbatch/oci/userns"
)

// newStack makes layers that each have a file with their own name.
func newStack(t *testing.T, layers ...string) overlay.Stack {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED, to mount takes root")
	}
	base := t.TempDir()
	s := overlay.Stack{Upper: base + "/up", Work: base + "/work", Target: base + "/mnt"}
	for _, l := range layers {
		s.Lower = append(s.Lower, filepath.Join(base, l))
	}
	for _, d := range append([]string{s.Upper, s.Work, s.Target}, s.Lower...) {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, l := range s.Lower {
		if err := os.WriteFile(filepath.Join(l, "f"), []byte(filepath.Base(l)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = unix.Unmount(s.Target, unix.MNT_DETACH) })
	return s
}

// TestVolatile: by either way nothing is written to the disk only to be removed, and what is
// to be mounted again can be.
func TestVolatile(t *testing.T) {
	for name, mount := range map[string]func(overlay.Stack) error{"new": overlay.Mount, "old": overlay.MountOld} {
		t.Run(name, func(t *testing.T) {
			s := newStack(t, "layer")
			for range 2 {
				if err := mount(s); err != nil {
					t.Fatal(err)
				}
				if err := unix.Unmount(s.Target, unix.MNT_DETACH); err != nil {
					t.Fatal(err)
				}
			}
			s.Once = true
			if err := mount(s); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(unix.Unmount(s.Target, unix.MNT_DETACH), overlay.Unmark(s), mount(s)); err != nil {
				t.Fatalf("after a mount that the kernel refused: %v", err)
			}
			mounts, err := os.ReadFile("/proc/self/mountinfo")
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(mounts)) {
				if strings.Contains(line, " "+s.Target+" ") && strings.Contains(line, "volatile") { // newer kernels: fsync=volatile
					return
				}
			}
			t.Errorf("not mounted so:\n%s", mounts)
		})
	}
}

// Kernels before 6.8 mount by another way, which has to give the same.
func TestOldWay(t *testing.T) {
	s := newStack(t, "a,b:c", "two")
	if err := overlay.MountOld(s); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(s.Target + "/f"); err != nil || string(data) != "two" {
		t.Errorf("read %q, %v", data, err)
	}
}

// Kernels before 6.15 mount mapped layers by another way.
func TestMappedOldWay(t *testing.T) {
	s := newStack(t, "layer")
	ns, err := userns.New(userns.MapOf(userns.Owner{UID: 1003, GID: 1003, First: 0x20000000}), false)
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	s.User = ns.User
	defer unix.Unmount(s.Lower[0], unix.MNT_DETACH)
	if err := overlay.MountAttached(s); err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(s.Target + "/f")
	if err != nil {
		t.Fatal(err)
	}
	if got := st.Sys().(*syscall.Stat_t); got.Uid != 1003 || got.Gid != 1003 {
		t.Errorf("the file is of %d:%d", got.Uid, got.Gid)
	}
}
