package replica

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// TestSaidOfCopies: whatever byte has changed of what is said of a copy, the copies are not listed, and it is not opened. Of an
// earlier version it has no sum, and is taken unless it cannot be read.
func TestSaidOfCopies(t *testing.T) {
	dir := t.TempDir()
	c, err := openCopies(dir, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	alone := raft.Configuration{Servers: []raft.Server{{ID: "a", Address: "127.0.0.1:7390"}}}
	_, trans := raft.NewInmemTransport("")
	sink, err := c.Create(raft.SnapshotVersionMax, 7, 3, alone, 2, trans)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sink.Write([]byte("a store")); err != nil {
		t.Fatal(err)
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, copiesDir, sink.ID(), saidFile)
	said, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	listed := func() int {
		t.Helper()
		list, err := c.List()
		if err != nil {
			if !strings.Contains(err.Error(), "gadm controllers remove") {
				t.Error(err)
			}
			return -1
		}
		return len(list)
	}
	for at := range int64(len(said)) {
		flip(t, path, at)
		if n := listed(); n >= 0 {
			t.Errorf("byte %d: %d copies are listed", at, n)
		}
		if _, _, err := c.Open(sink.ID()); err == nil {
			t.Errorf("byte %d: it is opened", at)
		}
		flip(t, path, at)
	}
	if n := listed(); n != 1 {
		t.Errorf("%d copies are listed", n)
	}
	if err := os.Remove(filepath.Join(filepath.Dir(path), sumFile)); err != nil {
		t.Fatal(err)
	}
	if n := listed(); n != 1 {
		t.Errorf("without a sum %d copies are listed", n)
	}
	if err := os.WriteFile(path, said[:len(said)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	if n := listed(); n >= 0 {
		t.Errorf("half of it: %d copies are listed", n)
	}
}
