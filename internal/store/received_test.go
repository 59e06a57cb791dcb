package store

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"gbatch/internal/job"
	"gbatch/internal/state"
)

// packed is a member's store as it is sent, with a change that is made to its database before.
func packed(t *testing.T, change func(*pebble.DB) error) []byte {
	t.Helper()
	cfg := Config{Dir: "store", FS: vfs.NewMem()}
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for n := job.Number(1); n <= 30; n++ {
		if err := s.Commit([]state.Record{{Kind: state.KindJob, Job: n, Value: filled(n)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Found(cfg); err != nil {
		t.Fatal(err)
	}
	m, err := OpenMember(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := change(m.db); err != nil {
		t.Fatal(err)
	}
	if err := m.Backup("copy"); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := (Config{Dir: "copy", FS: cfg.FS}).Pack(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestReceivedFormat: a copy of a store whose format is of a newer program is not taken, as what a start would be refused for.
func TestReceivedFormat(t *testing.T) {
	for format, want := range map[int]string{formatNumber: "", formatNumber + 1: "its format is 5 and this program knows up to 4: update this controller"} {
		sent := packed(t, func(db *pebble.DB) error { return db.Set(keyFormat, fmt.Append(nil, format), pebble.Sync) })
		cfg := Config{Dir: "received", FS: vfs.NewMem()}
		if err := cfg.Unpack(bytes.NewReader(sent)); err != nil {
			t.Fatal(err)
		}
		err := CheckReceived(cfg)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("format %d: %v, want %q", format, err, want)
		}
	}
}

// TestReceivedDamaged changes one bit in what is sent: the copy is refused, or has all that there was.
func TestReceivedDamaged(t *testing.T) {
	sent := packed(t, func(db *pebble.DB) error { return db.Flush() })
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	refused := 0
	for range 25 {
		bad := bytes.Clone(sent)
		at := rng.IntN(len(bad))
		bad[at] ^= 1 << rng.IntN(8)
		cfg := Config{Dir: "received", FS: vfs.NewMem()}
		if cfg.Unpack(bytes.NewReader(bad)) != nil || CheckReceived(cfg) != nil {
			refused++
			continue
		}
		s, err := Received(cfg)
		if err != nil {
			t.Fatalf("the bit at %d: it was looked at and does not open: %v", at, err)
		}
		found := 0
		err = s.All(state.KindJob, func(r state.Record) error {
			if bytes.Equal(r.Value, filled(r.Job)) {
				found++
			}
			return nil
		})
		if err != nil || found != 30 {
			t.Errorf("the bit at %d: %d of 30 jobs, %v", at, found, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if refused == 0 {
		t.Error("nothing was refused")
	}
}
