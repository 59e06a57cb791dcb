package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gbatch/internal/job"
)

// TestDiskFull fills the controller's disk, a small ext4, while a job runs and one waits.
// Submissions are refused and say why; nothing that was acknowledged is lost;
// with room again all goes on by itself.
func TestDiskFull(t *testing.T) {
	needs(t)
	dir := loopDisk(t, 256)
	s := newSite(t, siteOptions{ctldDir: filepath.Join(dir, "ctld")})
	blocker := s.submit(doc{name: "blocker", cpus: 8, command: sh("until [ -e /project/go ]; do sleep 0.1; done"), storage: []any{"/project"}})
	waiting := s.submit(doc{name: "waiting", cpus: 8, command: []string{"true"}})
	s.waitRunning(blocker)

	for _, tc := range []struct {
		name string
		left int64
	}{{"below_the_reserve", 40 << 20}, {"nothing_left", 0}} {
		t.Run(tc.name, func(t *testing.T) {
			filler := fill(t, dir, tc.left)
			file := s.write(doc{name: "refused", command: []string{"true"}}.json())
			eventually(t, "submissions are refused", func() bool { return s.run("gsubmit", "--timeout", "5s", file).code != 0 })
			r := s.run("gsubmit", "--timeout", "5s", file)
			if r.code != 1 || r.out != "" || !strings.Contains(r.err, "disk") {
				t.Errorf("gsubmit on a full disk: %v; want exit code 1 and a message about the disk", r)
			}
			if d := s.job(blocker); d.State != job.Running {
				t.Errorf("the job that ran:\n%s", describe(d))
			}
			if r := s.run("gqueue"); r.code != 0 || !strings.Contains(r.out, "waiting") {
				t.Errorf("gqueue on a full disk: %v", r)
			}
			if err := os.Remove(filler); err != nil {
				t.Fatal(err)
			}
			eventually(t, "submissions are taken again", func() bool { return s.run("gsubmit", "--timeout", "5s", "--hold", file).code == 0 })
		})
	}
	if !s.ctld.running() {
		t.Errorf("the controller has ended: %v", s.ctld.err)
	}
	fill(t, dir, 0)
	s.ctld.kill()
	if err := os.Remove(filepath.Join(dir, "filler")); err != nil {
		t.Fatal(err)
	}
	s.ctld.start()
	if err := os.WriteFile(filepath.Join(s.project(), "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{blocker, waiting} {
		if d := s.wait(id); d.State != job.Finished {
			t.Errorf("after the disk was full:\n%s", describe(d))
		}
	}
}

// fill takes all room of a file system but left bytes.
func fill(t *testing.T, dir string, left int64) string {
	t.Helper()
	path := filepath.Join(dir, "filler")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil {
		t.Fatal(err)
	}
	size := int64(st.Bavail)*st.Bsize - left
	for ; size > 0; size -= 1 << 20 { // the store may take some at the same time
		if err = unix.Fallocate(int(f.Fd()), 0, 0, size); !errors.Is(err, unix.ENOSPC) {
			break
		}
	}
	if err != nil {
		t.Fatalf("fill %s: %v", dir, err)
	}
	return path
}
