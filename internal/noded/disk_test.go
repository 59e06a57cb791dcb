package noded

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/noded/config"
)

// mounted is where a file system of a test's own is mounted.
func mounted(t *testing.T, mount func(dir string) error) string {
	t.Helper()
	needContainers(t)
	dir, err := os.MkdirTemp("/tmp", "gbatch-disk-")
	if err != nil {
		t.Fatal(err)
	}
	if err := mount(dir); err != nil {
		_ = os.Remove(dir)
		t.Skip("SKIPPED, no file system for it: ", err)
	}
	t.Cleanup(func() { // after the daemon has stopped
		// A shim that was just killed holds it a moment longer.
		until(t, "nobody to use the disk", func() bool { return unix.Unmount(dir, 0) == nil })
		if err := os.Remove(dir); err != nil {
			t.Errorf("remove disk: %v", err)
		}
	})
	return dir
}

// onDisk puts a site's state on a file system of its own.
func onDisk(t *testing.T, mount func(dir string) error, change func(*config.Config)) *site {
	t.Helper()
	dir := mounted(t, mount)
	return newSite(t, func(c *config.Config) {
		c.StateDir, c.MinFree = filepath.Join(dir, c.Name), 8<<20
		if change != nil {
			change(c)
		}
	})
}

// TestDiskFull: a disk that other hands filled makes the node say so and take no
// jobs. A job there keeps its own result, and the node is well again with room.
func TestDiskFull(t *testing.T) {
	s := onDisk(t, func(dir string) error { return unix.Mount("tmpfs", dir, "tmpfs", 0, "size=96m") }, nil).start()
	id := rankID(1)
	s.want(id, order("trap 'exit 7' TERM; echo ready; while :; do sleep 0.05; done"))
	s.ready(id)
	ballast := filepath.Join(filepath.Dir(s.cfg.StateDir), "ballast")
	if out, err := exec.Command("sh", "-c", "cat /dev/zero > "+ballast).CombinedOutput(); err == nil || !strings.Contains(string(out), "No space left") {
		t.Fatalf("fill the disk: %v %s", err, out)
	}
	until(t, "the node to say that its disk is full", func() bool {
		s.nudge()
		list := s.unhealthy()
		return len(list) > 0 && strings.HasPrefix(list[0], "disk full: ")
	})
	if e, _ := s.runNoLog(rankID(2), order("true")); e.Code != 0 && e.Reason != job.Server {
		t.Errorf("a rank on a full disk: %+v; want the node's fault", e)
	}
	s.halt() // what is there can be taken over
	s.start()
	s.phase(id, node.PhaseRunning)
	s.stop(id, api.Stop{Signal: "TERM", GraceMS: 20_000, Reason: job.ByUser})
	if e := s.exit(id); e.Code != 7 || e.Reason != job.ByUser {
		t.Errorf("the job that ran: %+v; want its own code", e)
	}
	s.drop(id)
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	until(t, "the node to be well again", func() bool { s.nudge(); return len(s.unhealthy()) == 0 })
	if e, out := s.run(rankID(3), order("echo next")); e.Code != 0 || out != "next\n" {
		t.Errorf("the next job: %+v, %q", e, out)
	}
	s.empty()
}

// TestDiskTurnsReadOnly: as file systems do on errors. The node says so, what
// runs goes on; how it ends cannot be recorded, and is told as the node's fault.
func TestDiskTurnsReadOnly(t *testing.T) {
	var disk string
	s := onDisk(t, func(dir string) error {
		disk = dir
		image := filepath.Join(t.TempDir(), "disk")
		for _, args := range [][]string{{"truncate", "-s", "256M", image}, {"mkfs.ext4", "-q", image}, {"mount", "-o", "loop", image, dir}} {
			if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
				return errors.Join(err, errors.New(string(out)))
			}
		}
		return nil
	}, nil).start()
	id := rankID(1)
	s.want(id, order(patient))
	s.ready(id)
	s.phase(id, node.PhaseRunning)
	// By the system call: the program mount reads the table of mounts first, which other tests change meanwhile.
	if err := unix.Mount("", disk, "", unix.MS_REMOUNT|unix.MS_RELATIME, "abort"); err != nil {
		s.drop(id)
		s.empty()
		t.Skip("SKIPPED, this file system cannot be made to fail: ", err)
	}
	until(t, "the node to say so", func() bool {
		s.nudge()
		return strings.Contains(strings.Join(s.unhealthy(), "; "), "read-only file system")
	})
	if e, _ := s.runNoLog(rankID(2), order("true")); e.Reason != job.Server && e.Reason != job.NodeFail {
		t.Errorf("a new rank: %+v; want the node's fault", e)
	}
	if now := s.phase(id, node.PhaseRunning); now.Phase != node.PhaseRunning {
		t.Errorf("the running rank is %s: %+v", now.Phase, now.Exit)
	}
	s.stop(id, api.Stop{Signal: "TERM", GraceMS: 20_000, Reason: job.ByUser})
	e := s.exit(id)
	t.Logf("the running one ended with %+v", e)
	if e.Reason != job.ByUser && e.Reason != job.NodeFail && e.Reason != job.Server {
		t.Errorf("the running one: %+v", e)
	}
	s.drop(id)
}
