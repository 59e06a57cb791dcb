package ctld

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gbatch/internal/ctld/site"
)

// TestSocketRemoved removes the socket's file, and its directory, of a controller that runs: it is reached there again, by all.
func TestSocketRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run", "sock")
	newSite(t, func(c *site.Config) { c.Socket = path })
	for _, gone := range []string{path, filepath.Dir(path)} {
		if err := os.RemoveAll(gone); err != nil {
			t.Fatal(err)
		}
		reached := func() bool {
			st, err := os.Stat(path)
			if err != nil || st.Mode().Perm() != 0o666 {
				return false
			}
			conn, err := net.Dial("unix", path)
			return err == nil && conn.Close() == nil
		}
		look, end := time.NewTicker(10*time.Millisecond), time.After(time.Minute)
		for !reached() {
			select {
			case <-look.C:
			case <-end:
				t.Fatalf("without %s: it is not reached", gone)
			}
		}
	}
}

// TestSocketInUse: a controller of another directory takes nobody's socket, and takes one that nobody answers at any more.
func TestSocketInUse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sock")
	first := newSite(t, func(c *site.Config) { c.Socket = path })
	other := &testSite{t: t, cfg: first.cfg}
	other.cfg.Dir = t.TempDir()
	wants(t, other.refused(), "another program answers at "+path)
	if _, err := first.Cluster(t.Context()); err != nil {
		t.Errorf("the first one is not reached any more: %v", err)
	}
	first.stop()
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false)
	if err := left.Close(); err != nil {
		t.Fatal(err)
	}
	first.start()
}
