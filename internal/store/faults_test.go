package store

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"gbatch/internal/job"
	"gbatch/internal/state"
)

// filled is what the job n has in the store, as died makes it too.
func filled(n job.Number) []byte { return fmt.Appendf(nil, "job %d %s", n, strings.Repeat("x", 200)) }

// holds opens a store and says how many jobs it has as they were committed, or why it
// cannot be used.
func holds(cfg Config) (found int, err error) {
	s, err := Open(cfg)
	if err != nil {
		return 0, err
	}
	err = s.Load(func(r state.Record) error {
		if r.Kind == state.KindJob && bytes.Equal(r.Value, filled(r.Job)) {
			found++
		}
		return nil
	})
	return found, errors.Join(err, s.Close())
}

// TestPowerCuts cuts the power after each commit that was acknowledged, with any part
// of what was not synced on the disk: all that was acknowledged is there, and nothing
// is taken for a loss.
func TestPowerCuts(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	fs := vfs.NewCrashableMem()
	s := open(t, fs)
	for n := range 60 {
		if err := s.Commit([]state.Record{{Kind: state.KindJob, Job: job.Number(n + 1), Value: filled(job.Number(n + 1))}}); err != nil {
			t.Fatal(err)
		}
		if n%20 == 19 {
			if err := s.db.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		after := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: []int{0, 30, 100}[n%3], RNG: rng})
		if found, err := holds(Config{Dir: "db", FS: after}); err != nil || found != n+1 {
			t.Fatalf("after %d commits: %d are there, %v", n+1, found, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestFlippedBits changes one bit anywhere in a store's files: it is refused, or a
// record's reading is, or all is there.
func TestFlippedBits(t *testing.T) {
	const jobs = 30
	whole := died(t, jobs)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 60 {
		dir := filepath.Join(t.TempDir(), "store")
		copyStore(t, whole, dir)
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		file := append(files, dir+MarkSuffix)[rng.IntN(len(files)+1)]
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if len(text) == 0 {
			continue
		}
		at := rng.IntN(len(text))
		text[at] ^= 1 << rng.IntN(8)
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if found, err := holds(Config{Dir: dir}); err == nil && found != jobs {
			t.Errorf("byte %d of %s: %d of %d jobs are there, and nothing is said", at, filepath.Base(file), found, jobs)
		}
	}
}
