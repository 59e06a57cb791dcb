package noded

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/noded/config"
)

// ext4 mounts a file system of its own for a test.
func ext4(t *testing.T, size string, quotas bool) func(dir string) error {
	return func(dir string) error {
		image := filepath.Join(t.TempDir(), "disk")
		mkfs, options := []string{"mkfs.ext4", "-q", "-m", "0", image}, "loop"
		if quotas {
			mkfs = []string{"mkfs.ext4", "-q", "-m", "0", "-O", "quota,project", "-E", "quotatype=prjquota", image}
			options = "loop,prjquota"
		}
		for _, args := range [][]string{{"truncate", "-s", size, image}, mkfs, {"mount", "-o", options, image, dir}} {
			if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
				return errors.Join(err, errors.New(string(out)))
			}
		}
		return nil
	}
}

// fills writes until it may not, and says what then is there.
const fills = `cat /dev/zero > /big; n=$(stat -c %s /big); echo "wrote $((n >> 20)) MiB"; exit 3`

// bounding are the ways to hold containers to what they may write, each with a
// file system where it works, and what a program is told.
var bounding = map[string]struct {
	quotas bool
	mode   string
	full   string
}{
	"project quotas":          {true, config.DiskQuota, "Disk quota exceeded"},
	"a file system in a file": {false, config.DiskImage, "No space left on device"},
}

// TestDiskBound: a container is refused what is more than it may write, wherever
// that is, and nobody else is harmed.
func TestDiskBound(t *testing.T) {
	for name, way := range bounding {
		t.Run(name, func(t *testing.T) {
			s := onDisk(t, ext4(t, "2G", way.quotas), func(c *config.Config) { c.Disk.PerContainer, c.Disk.Mode = 16<<20, way.mode }).start()
			neighbour := rankID(1)
			s.want(neighbour, order(patient))
			s.ready(neighbour)
			sizes := `n=$(df -m / | tail -1 | awk '{print $2}'); [ $n -ge 15 ] && [ $n -le 17 ] && echo about 16; `
			e, out := s.run(rankID(2), order(sizes+fills))
			if !strings.HasPrefix(out, "about 16\ncat: write error: "+way.full+"\nwrote 1") {
				t.Errorf("over its image: output %q", out)
			}
			if want := `exit code 3; it had filled the 16 MiB that a container may (disk.perContainer of the node): a job reserves more by "diskGb"`; e.Message != want || e.Reason != job.ExitCode {
				t.Errorf("ended as %s %q, want %q", e.Reason, e.Message, want)
			}
			e, out = s.run(rankID(3), order(`touch /tmp/x; for f in /etc/hosts /etc/resolv.conf /tmp/x; do cat /dev/zero >> $f; done 2>/dev/null; cat /etc/hosts /etc/resolv.conf /tmp/x | wc -c`))
			var n int
			if _, err := fmt.Sscan(out, &n); err != nil || n > 17<<20 || n < 14<<20 || e.Code != 0 {
				t.Errorf("files of the node's making: wrote %q, %+v", out, e)
			}
			_, out = s.run(rankID(4), order(`mkdir /many; cd /many; i=0; while true > $i; do i=$((i+1)); done 2>/dev/null; echo $i`))
			if _, err := fmt.Sscan(out, &n); err != nil || n > 4200 || n < 900 {
				t.Errorf("made %q files", out)
			}
			_, out = s.run(rankID(5), order("dd if=/dev/zero of=/big bs=1M count=32 2>/dev/null; stat -c %s /big", func(o *api.RunOrder) { o.Spec.Gbatch = &job.Gbatch{DiskGB: 1} }))
			if out != "33554432\n" {
				t.Errorf("with 1 GiB reserved: wrote %q", out)
			}
			_, out = s.run(rankID(6), order(`mkdir /d; chattr -p 7 /d && echo changed; chattr -p 0 /d && echo changed; `+fills))
			if strings.Contains(out, "changed") || !strings.Contains(out, "wrote 1") {
				t.Errorf("having itself counted otherwise: output %q", out)
			}
			if list := s.unhealthy(); len(list) > 0 {
				t.Errorf("the node is unhealthy: %q", list)
			}
			if p := s.phase(neighbour, node.PhaseRunning).Phase; p != node.PhaseRunning {
				t.Errorf("the neighbour is %s", p)
			}
			s.empty()
			s.wroteNothing()
		})
	}
}

// wroteNothing checks that nothing is left of what ranks wrote. Places that are
// kept for others are empty.
func (s *site) wroteNothing() {
	s.t.Helper()
	top := filepath.Join(s.cfg.StateDir, "disk")
	list, err := os.ReadDir(top)
	for _, e := range list {
		var inside []os.DirEntry
		if strings.HasPrefix(e.Name(), ".slot-") && e.IsDir() {
			inside, _ = os.ReadDir(filepath.Join(top, e.Name()))
		}
		if !strings.HasPrefix(e.Name(), ".") || len(inside) > 1 {
			s.t.Errorf("left: %s, in it %v", e.Name(), inside)
		}
	}
	if err != nil {
		s.t.Error(err)
	}
}

// TestDiskBoundOverRestart: what a rank may write is the same after a restart of
// the daemon.
func TestDiskBoundOverRestart(t *testing.T) {
	for name, way := range bounding {
		t.Run(name, func(t *testing.T) {
			var d *dataSite
			dir := mounted(t, ext4(t, "400M", way.quotas))
			d = newDataSite(t, func(c *config.Config) {
				c.StateDir = filepath.Join(dir, c.Name)
				c.Disk.PerContainer, c.MinFree, c.Disk.Mode = 32<<20, 8<<20, way.mode
			})
			d.start()
			d.s3.Put("lab/data/one", strings.Repeat("x", 20<<20))
			id := rankID(1)
			d.want(id, d.dataOrder(id, `trap 'cat /dev/zero > /over; stat -c %s /over; exit 3' TERM; echo ready; while :; do sleep 0.05; done`,
				job.Gbatch{Inputs: []job.Input{{URI: "s3://lab/data/", Path: "/in"}}}))
			d.ready(id)
			d.halt()
			d.start()
			d.phase(id, node.PhaseRunning)
			d.stop(id, api.Stop{Signal: "TERM", GraceMS: 20_000, Reason: job.ByUser})
			e := d.exit(id)
			var over int
			_, text, _ := strings.Cut(d.output(id), way.full+"\n")
			if _, err := fmt.Sscan(text, &over); err != nil || over < 30<<20 || over > 33<<20 {
				t.Errorf("wrote %d (%v), of %d; %+v", over, err, 32<<20, e)
			}
			d.drop(id)
			d.empty()
			d.wroteNothing()
		})
	}
}

// TestInputsAreBounded: what a container adds to its inputs counts as what it
// writes, and the inputs do not.
func TestInputsAreBounded(t *testing.T) {
	for _, mode := range []string{config.DiskImage, config.DiskWatch} {
		t.Run(mode, func(t *testing.T) {
			d := newDataSite(t, func(c *config.Config) { c.Disk.PerContainer, c.Disk.Mode = 16<<20, mode })
			d.start()
			d.s3.Put("lab/data/one", strings.Repeat("x", 24<<20))
			inputs := job.Gbatch{Inputs: []job.Input{{URI: "s3://lab/data/", Path: "/in"}}}
			if e, _ := d.run(rankID(1), d.dataOrder(rankID(1), "dd if=/dev/zero of=/in/more bs=1M count=8", inputs)); e.Code != 0 {
				t.Errorf("one that may: %+v", e)
			}
			e, _ := d.run(rankID(2), d.dataOrder(rankID(2), "dd if=/dev/zero of=/in/more bs=1M count=40; sleep 1000", inputs))
			if e.Reason != job.Disk || !strings.HasPrefix(e.Message, "it had written ") {
				t.Errorf("one that wrote too much: %s %q", e.Reason, e.Message)
			}
			d.empty()
			d.wroteNothing()
		})
	}
}

// TestHog: a job that fills the node's disk is ended with the reason, and the
// others go on.
func TestHog(t *testing.T) {
	for _, mode := range []string{config.DiskWatch, config.DiskImage, config.DiskQuota} {
		t.Run(mode, func(t *testing.T) {
			s := onDisk(t, ext4(t, "300M", mode == config.DiskQuota), func(c *config.Config) { c.MinFree, c.Disk.Mode = 64<<20, mode }).start()
			neighbour := rankID(1)
			s.want(neighbour, order(patient))
			s.ready(neighbour)
			s.setLease(3000)
			hog := rankID(2)
			s.want(hog, order("cat /dev/zero > /big; echo full; while :; do sleep 0.05; done"))
			e := s.exit(hog)
			if e.Reason != job.Disk || !strings.Contains(e.Message, `it keeps 32 MiB (half of its minFree)`) {
				t.Errorf("the hog ended as %s %q", e.Reason, e.Message)
			}
			s.drop(hog)
			until(t, "the node to be well again", func() bool { s.nudge(); return len(s.unhealthy()) == 0 })
			s.stop(neighbour, api.Stop{Signal: "TERM", GraceMS: 20_000, Reason: job.ByUser})
			if e := s.exit(neighbour); e.Code != 9 || e.Reason != job.ByUser {
				t.Errorf("the neighbour: %+v", e)
			}
			s.drop(neighbour)
			s.empty()
			s.wroteNothing()
		})
	}
}

// TestFullDiskKeepsLease: while the disk is full, by whatever hands, contact
// with the controller is noted, and running jobs go on.
func TestFullDiskKeepsLease(t *testing.T) {
	s := onDisk(t, ext4(t, "100M", false), nil).start()
	id := rankID(1)
	s.want(id, order(patient))
	s.ready(id)
	ballast := filepath.Join(filepath.Dir(s.cfg.StateDir), "ballast")
	if out, err := exec.Command("sh", "-c", "cat /dev/zero > "+ballast).CombinedOutput(); err == nil || !strings.Contains(string(out), "No space left") {
		t.Fatalf("fill the disk: %v %s", err, out)
	}
	s.setLease(6000)
	begun, before := time.Now(), len(s.history[id])
	s.mu.Lock()
	syncs := s.syncs
	s.mu.Unlock()
	until(t, "the lease to be renewed more than once over", func() bool {
		s.nudge()
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.syncs > syncs+12 && time.Since(begun) > 7*time.Second
	})
	if p := s.phase(id, node.PhaseRunning).Phase; p != node.PhaseRunning || len(s.history[id]) != before {
		t.Errorf("the rank is %s", p)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	s.empty()
}

// TestWatched: where no quota holds a container, one that wrote too much is
// ended, however it hides that.
func TestWatched(t *testing.T) {
	s := newSite(t, func(c *config.Config) { c.Disk.PerContainer, c.Disk.Mode = 16<<20, config.DiskWatch }).start()
	for i, line := range []string{
		"dd if=/dev/zero of=/big bs=1M count=40; sleep 1000",
		"mkdir -p /a/b/c; ln -s / /a/b/c/d; dd if=/dev/zero of=/a/b/c/big bs=1M count=40; sleep 1000",
		"mkdir /d; cd /d; i=0; while [ $i -lt 6000 ]; do : > $i; i=$((i+1)); done; sleep 1000",
	} {
		e, _ := s.run(rankID(i+1), order(line))
		if e.Reason != job.Disk || !strings.HasPrefix(e.Message, "it had written ") ||
			!strings.HasSuffix(e.Message, ` to the node's disk, of the 16 MiB that a container may (disk.perContainer of the node): a job reserves more by "diskGb"`) {
			t.Errorf("%s: ended as %s %q", line, e.Reason, e.Message)
		}
	}
	if e, _ := s.run(rankID(9), order("dd if=/dev/zero of=/big bs=1M count=8")); e.Code != 0 {
		t.Errorf("one that wrote less: %+v", e)
	}
	s.empty()
	s.wroteNothing()
}

// TestImageAfterCrash: the file system of a container that ended before the
// machine did is mounted again for its outputs, and one of nobody's goes.
func TestImageAfterCrash(t *testing.T) {
	d := newDataSite(t, func(c *config.Config) { c.Disk.Mode = config.DiskImage })
	d.start()
	id := rankID(1)
	d.want(id, d.dataOrder(id, "trap 'echo kept > /file; exit 0' TERM; echo ready; while :; do sleep 0.05; done",
		job.Gbatch{Outputs: []job.Output{{Path: "/file", URI: "file:///project/out/"}}}))
	d.ready(id)
	dir := filepath.Join(d.cfg.StateDir, "disk", id.String())
	var above, here unix.Stat_t
	if err := errors.Join(unix.Stat(filepath.Dir(dir), &above), unix.Stat(dir, &here)); err != nil || above.Dev == here.Dev {
		t.Fatal("the container has no file system of its own", err)
	}
	pid := d.a.ranks[id].Container().PID()
	d.halt()
	if err := unix.Kill(pid, unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	until(t, "the container's end", func() bool {
		_, err := os.Stat(filepath.Join(d.cfg.StateDir, "ranks", id.String(), "box", "exit.json"))
		return err == nil && unix.Kill(pid, 0) != nil
	})
	stray := filepath.Join(d.cfg.StateDir, "disk", rankID(7).String())
	if out, err := exec.Command("cp", "--sparse=always", filepath.Join(d.cfg.StateDir, "disk", ".blank"), stray+".img").CombinedOutput(); err != nil {
		t.Fatal(string(out))
	}
	if err := os.Mkdir(stray, 0o700); err != nil {
		t.Fatal(err)
	}
	until(t, "its file system to be unmounted", func() bool { return unix.Unmount(dir, 0) == nil })
	d.start()
	if _, err := os.Stat(stray + ".img"); !os.IsNotExist(err) {
		t.Errorf("a file system of nobody's: %v", err)
	}
	if e := d.exit(id); e.Code != 0 {
		t.Errorf("ended as %+v", e)
	}
	if text, err := os.ReadFile(filepath.Join(d.top, "out", "file")); string(text) != "kept\n" {
		t.Errorf("its output is %q, %v", text, err)
	}
	d.drop(id)
	d.empty()
	d.wroteNothing()
}

// TestDamagedImage: a file system of a container's own that is damaged goes with
// its container, and harms nobody.
func TestDamagedImage(t *testing.T) {
	s := newSite(t, func(c *config.Config) { c.Disk.Mode = config.DiskImage }).start()
	id := rankID(1)
	s.want(id, order(patient))
	s.ready(id)
	slot, err := filepath.EvalSymlinks(filepath.Join(s.cfg.StateDir, "disk", id.String()))
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(slot+".img", os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteAt([]byte(strings.Repeat("damage, ", 4<<20)), 1024)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if e, out := s.run(rankID(2), order("echo well")); e.Code != 0 || out != "well\n" {
		t.Errorf("another: %+v %q", e, out)
	}
	s.empty()
	s.wroteNothing()
}
