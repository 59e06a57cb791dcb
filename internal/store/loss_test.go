package store

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gbatch/internal/job"
	"gbatch/internal/state"
)

// died makes a store with that many jobs, each committed by itself, and leaves
// it as a process does that is killed: not closed. Half of the jobs have reached
// the database's sorted files, the others are in its log alone.
func died(t *testing.T, jobs int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	s, err := Open(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	for n := range jobs {
		if err := s.Commit([]state.Record{{Kind: state.KindJob, Job: job.Number(n + 1), Value: fmt.Appendf(nil, "job %d %s", n+1, strings.Repeat("x", 200))}}); err != nil {
			t.Fatal(err)
		}
		if n == jobs/2 {
			if err := s.db.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	copied := filepath.Join(t.TempDir(), "store")
	copyStore(t, dir, copied)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return copied
}

func copyStore(t *testing.T, from, to string) {
	t.Helper()
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(from + ".mark")
	if err == nil {
		err = errors.Join(os.CopyFS(to, os.DirFS(from)), os.WriteFile(to+".mark", text, 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// newest is the file of a kind that was made last.
func newest(t *testing.T, dir, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no %s: %v", dir, pattern, err)
	}
	return slices.Max(files)
}

func truncate(t *testing.T, path string, part float64) {
	t.Helper()
	st, err := os.Stat(path)
	if err == nil {
		err = os.Truncate(path, int64(float64(st.Size())*part))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestLossIsFound takes from a store what was acknowledged. It is never opened
// as if it were whole.
func TestLossIsFound(t *testing.T) {
	const jobs = 60
	whole := died(t, jobs)
	for name, tc := range map[string]struct {
		damage func(t *testing.T, dir string)
		want   string
	}{
		"log cut":       {func(t *testing.T, dir string) { truncate(t, newest(t, dir, "*.log"), 0.5) }, "commits that were made to it are missing"},
		"log emptied":   {func(t *testing.T, dir string) { truncate(t, newest(t, dir, "*.log"), 0) }, "commits that were made to it are missing"},
		"log deleted":   {func(t *testing.T, dir string) { remove(t, newest(t, dir, "*.log")) }, "commits that were made to it are missing"},
		"store deleted": {func(t *testing.T, dir string) { remove(t, dir) }, "it is gone: 61 commits were made to it"},
		"store emptied": {func(t *testing.T, dir string) { remove(t, dir); mkdir(t, dir) }, "it is gone"},
		"new store":     {func(t *testing.T, dir string) { remove(t, dir); renewAway(t, dir) }, "it is another store"},
		"file deleted":  {func(t *testing.T, dir string) { remove(t, newest(t, dir, "*.sst")) }, ""},
		"mark deleted":  {func(t *testing.T, dir string) { remove(t, dir+".mark") }, "is gone; it has 61 commits"},
		"mark cut":      {func(t *testing.T, dir string) { truncate(t, dir+".mark", 0) }, "cannot be used"},
		"other commits": {func(t *testing.T, dir string) { otherEnd(t, dir) }, "are not those that were made to it"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store")
			copyStore(t, whole, dir)
			tc.damage(t, dir)
			s, err := Open(Config{Dir: dir})
			if err == nil {
				t.Fatalf("it was opened with %d of %d jobs", len(loaded(t, s)), jobs)
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %q, want %q in it", err, tc.want)
			}
			t.Log(err)
		})
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

func mkdir(t *testing.T, path string) {
	t.Helper()
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
}

// renewAway puts an empty store of another origin into the place of dir, and
// leaves the mark as it is.
func renewAway(t *testing.T, dir string) {
	t.Helper()
	other := filepath.Join(t.TempDir(), "store")
	s, err := Open(Config{Dir: other})
	if err == nil {
		err = s.Close()
	}
	if err == nil {
		err = os.CopyFS(dir, os.DirFS(other))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// otherEnd exchanges the last commit for another one.
func otherEnd(t *testing.T, dir string) {
	t.Helper()
	before := filepath.Join(t.TempDir(), "store")
	copyStore(t, dir, before)
	for i, at := range []string{before, dir} {
		s, err := Open(Config{Dir: at})
		if err == nil {
			err = errors.Join(s.Commit([]state.Record{{Kind: state.KindJob, Job: 1, Value: fmt.Appendf(nil, "version %d", i)}}), s.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	remove(t, dir)
	if err := os.CopyFS(dir, os.DirFS(before)); err != nil {
		t.Fatal(err)
	}
}

// TestFlippedBytes flips a byte anywhere in the store's files: the store says so,
// or all is there as it was.
func TestFlippedBytes(t *testing.T) {
	const jobs = 40
	whole := died(t, jobs)
	s, err := Open(Config{Dir: copyOf(t, whole)})
	if err != nil {
		t.Fatal(err)
	}
	want := loaded(t, s)
	if err := s.Close(); err != nil || len(want) != jobs {
		t.Fatalf("%d jobs, %v", len(want), err)
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	files, err := fs.Glob(os.DirFS(whole), "*")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "store")
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(whole, name))
		if err != nil {
			t.Fatal(err)
		}
		for range min(len(text), 30) {
			copyStore(t, whole, dir)
			at := rnd.IntN(len(text))
			damaged := slices.Clone(text)
			damaged[at] ^= byte(1 + rnd.IntN(255))
			if err := os.WriteFile(filepath.Join(dir, name), damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			if got, err := reopened(dir); err == nil && !slices.Equal(got, want) {
				t.Errorf("byte %d of %s flipped: %d of %d jobs were served as if all were well", at, name, len(got), len(want))
			}
		}
	}
}

func copyOf(t *testing.T, from string) string {
	dir := filepath.Join(t.TempDir(), "store")
	copyStore(t, from, dir)
	return dir
}

func reopened(dir string) (out []string, err error) {
	s, err := Open(Config{Dir: dir})
	if err != nil {
		return nil, err
	}
	err = s.Load(func(r state.Record) error {
		out = append(out, fmt.Sprintf("%c %d %d %s=%s", r.Kind, r.Job, r.Seq, r.Name, r.Value))
		return nil
	})
	return out, errors.Join(err, s.Close())
}
