package vmtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"gbatch/cgroups"
	"gbatch/oci"
)

// checkSweep leaves a container without its shim, and a group that nothing
// explains, and removes both as a starting daemon does.
func checkSweep(r *report) {
	b := newBox("orphan", "echo ready; sleep 1000")
	r.check("sweep", func() error {
		if err := errors.Join(b.startElsewhere(), b.awaitRunning()); err != nil {
			return err
		}
		pid := b.shim.PID()
		if err := b.killShim(); err != nil {
			return err
		}
		if err := unix.Kill(pid, 0); err != nil {
			return fmt.Errorf("the container went with its shim: %w", err)
		}
		stray := prefix() + "/stray"
		if err := makeStray(stray); err != nil {
			return err
		}
		if err := oci.Remove(b.dir); err != nil {
			return err
		}
		removed, err := cgroups.Sweep(prefix(), func(string) bool { return false })
		if diff := cmp.Diff([]string{stray}, removed); err != nil || diff != "" {
			return fmt.Errorf("%v, removed (-want +got):\n%s", err, diff)
		}
		// Who has adopted it has yet to notice its end.
		if err := poll("its process is gone", func() bool { return errors.Is(unix.Kill(pid, 0), unix.ESRCH) }); err != nil {
			return err
		}
		return gone(b)
	})
	r.check("nothing_left", nothingLeft)
}

// makeStray makes a group with another below it, as far as v1 in one hierarchy.
func makeStray(path string) error {
	root := cgroupRoot
	if mode == cgroups.V1 {
		root += "/freezer"
	}
	return os.MkdirAll(root+path+"/below", 0o755)
}

// killShim ends the process that works in the container's directory.
func (b *box) killShim() error {
	procs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return err
	}
	for _, p := range procs {
		cwd, _ := os.Readlink(p + "/cwd")
		args, _ := os.ReadFile(p + "/cmdline")
		if cwd != b.dir || !strings.Contains(string(args), "\x00shim\x00") {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(p))
		if err != nil {
			return err
		}
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			return err
		}
		<-b.shim.Done()
		return nil
	}
	return fmt.Errorf("no shim in %s", b.dir)
}
