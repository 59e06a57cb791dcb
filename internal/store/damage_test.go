package store

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"gbatch/internal/job"
	"gbatch/internal/state"
)

// reads counts what is read of files of records.
type reads struct {
	vfs.FS
	n *atomic.Int64
}

func (d reads) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	f, err := d.FS.Open(name, o...)
	if err != nil || !strings.HasSuffix(name, ".sst") {
		return f, err
	}
	return counted{f, d.n}, nil
}

type counted struct {
	vfs.File
	n *atomic.Int64
}

func (f counted) ReadAt(b []byte, at int64) (int, error) {
	f.n.Add(1)
	return f.File.ReadAt(b, at)
}

// TestDamageIsNoBusyLoop: a compaction that meets damage is tried again and again by the database, with pauses.
func TestDamageIsNoBusyLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := reads{vfs.NewMem(), new(atomic.Int64)}
		s, err := Open(Config{Dir: "store", FS: disk})
		if err != nil {
			t.Fatal(err)
		}
		damaged := false
		for n := job.Number(1); n <= 8; n++ { // each round is a file, and there are enough for a compaction
			if err := s.Commit([]state.Record{{Kind: state.KindJob, Job: n % 2, Value: filled(n)}}); err != nil {
				t.Fatal(err)
			}
			if err := s.db.Flush(); err != nil {
				t.Fatal(err)
			}
			if !damaged {
				damaged = true
				flipLastTable(t, disk.FS)
			}
		}
		before := disk.n.Load()
		time.Sleep(10 * time.Second) // of the bubble: it ends once nothing is busy
		if got := disk.n.Load() - before; got > 1000 {
			t.Errorf("%d reads in ten seconds", got)
		}
		_ = s.Close()
	})
}

func flipLastTable(t *testing.T, disk vfs.FS) {
	t.Helper()
	names, err := disk.List("store")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if !strings.HasSuffix(n, ".sst") {
			continue
		}
		f, err := disk.OpenReadWrite("store/"+n, vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 16)
		if _, err := f.ReadAt(b, 8); err != nil {
			t.Fatal(err)
		}
		for i := range b {
			b[i] ^= 0x10
		}
		if _, err := f.WriteAt(b, 8); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
