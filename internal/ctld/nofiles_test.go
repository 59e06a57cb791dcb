package ctld

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/ctld/site"
	"gbatch/internal/job"
	"gbatch/internal/node"
)

// TestNoFilesLeft fills the table of files of the controller's disk, which has room for bytes: it is as with a full disk.
func TestNoFilesLeft(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=256m,nr_inodes=300"); err != nil {
		t.Skipf("SKIPPED: it mounts a file system of its own: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	s := newSite(t, func(c *site.Config) { c.Dir = filepath.Join(dir, "ctld") })
	n := s.node("n1")
	s.submit(hello(1), "")
	n.until(1)
	id := job.RankID{Job: 1, Attempt: 1}
	n.report(id, node.PhaseRunning, nil)
	var made []string
	for {
		path := filepath.Join(dir, fmt.Sprint(len(made)))
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			break
		}
		made = append(made, path)
	}
	if _, err := s.Submit(t.Context(), hello(1), ""); !client.IsCode(err, api.CodeStorageFull) {
		t.Errorf("a submission to a disk without room for files: %v", err)
	}
	if resp := n.sync(nil); resp.LeaseMS == 0 {
		t.Error("the node gets no lease")
	}
	for _, path := range made {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	s.submit(hello(1), "")
	if got := s.states()[1]; got != job.Running {
		t.Errorf("what ran is %s", got)
	}
}
