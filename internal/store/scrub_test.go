package store

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"gbatch/internal/job"
	"gbatch/internal/state"
)

// scrub gives the jobs that a scrub reads, and what it says.
func scrub(t *testing.T, s *Store) (found int, damage error) {
	t.Helper()
	damage, err := s.Scrub(filepath.Join(t.TempDir(), "copy"), func(r state.Record) error {
		if r.Kind == state.KindJob && bytes.Equal(r.Value, filled(r.Job)) {
			found++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found, damage
}

// TestScrub changes one bit in a file of a store that is in use: the scrub says so, or
// reads all that is there, and commits go on.
func TestScrub(t *testing.T) {
	const jobs = 30
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	said := 0
	for range 20 {
		dir := filepath.Join(t.TempDir(), "store")
		s, err := Open(Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		for n := job.Number(1); n <= jobs; n++ {
			if err := s.Commit([]state.Record{{Kind: state.KindJob, Job: n, Value: filled(n)}}); err != nil {
				t.Fatal(err)
			}
			if n == jobs/2 {
				if err := s.db.Flush(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if found, damage := scrub(t, s); damage != nil || found != jobs {
			t.Fatalf("a store that is whole: %d of %d jobs are read, %v", found, jobs, damage)
		}
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		file := files[rng.IntN(len(files))]
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if len(text) == 0 {
			s.Close()
			continue
		}
		at := rng.IntN(len(text))
		text[at] ^= 1 << rng.IntN(8)
		f, err := os.OpenFile(file, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt(text[at:at+1], int64(at)); err != nil {
			t.Fatal(err)
		}
		f.Close()
		found, damage := scrub(t, s)
		if damage != nil {
			said++
		} else if found != jobs {
			t.Errorf("byte %d of %s: %d of %d jobs are there, and nothing is said", at, filepath.Base(file), found, jobs)
		}
		_ = s.Close()
	}
	if said == 0 {
		t.Error("no damage was found")
	}
}

// TestScrubOfOthers: a scrub also finds damage in what is no record: the store's own keys, and records that were taken out.
func TestScrubOfOthers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s, err := Open(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	const keys = 300
	for n := range keys {
		if err := errors.Join(s.db.Set(fmt.Appendf(nil, "m-test-%04d", n), filled(job.Number(n)), nil), s.db.Set(fmt.Appendf(nil, "x%04d", n), filled(job.Number(n)), nil)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(s.db.Flush(), s.db.DeleteRange([]byte("x"), []byte("y"), nil), s.db.Flush()); err != nil {
		t.Fatal(err)
	}
	if _, damage := scrub(t, s); damage != nil {
		t.Fatal(damage)
	}
	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	if err != nil {
		t.Fatal(err)
	}
	flips := 0
	for _, table := range tables {
		text, err := os.ReadFile(table)
		if err != nil {
			t.Fatal(err)
		}
		for at := 100; at < len(text)-4096; at += 4001 { // before what is said of the table
			text[at] ^= 1
			if err := os.WriteFile(table, text, 0o644); err != nil {
				t.Fatal(err)
			}
			if _, damage := scrub(t, s); damage == nil {
				t.Errorf("%s, byte %d of %d: nothing is found", filepath.Base(table), at, len(text))
			}
			text[at] ^= 1
			flips++
		}
		if err := os.WriteFile(table, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if flips == 0 {
		t.Error("no table is that large")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
