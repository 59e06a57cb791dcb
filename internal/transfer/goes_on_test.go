package transfer

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestGoesOn: who comes after a crash, with nothing but the directory, fetches
// and sends only what is missing.
func TestGoesOn(t *testing.T) {
	s, c := newServer(t), testClient()
	c.Parallel = 1
	dir := files(t, map[string]int{"large": 32 << 20, "small": 3})
	dead, kill := context.WithCancel(t.Context())
	var puts atomic.Int32
	s.Hook(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == "PUT" && puts.Add(1) == 4 {
			kill()
			panic(http.ErrAbortHandler)
		}
		return false
	})
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	sink, err := c.S3Sink(s.at, "s3://lab/")
	if err != nil {
		t.Fatal(err)
	}
	send := Send{URI: "s3://lab/", Sink: sink, From: Dir{Root: root}, Names: []string{"large", "small"}, Journal: dir + ".journal"}
	if err := c.Send(dead, send); !errors.Is(err, context.Canceled) {
		t.Fatalf("killed: %v", err)
	}
	s.Hook(nil)
	if err := c.Send(t.Context(), send); err != nil {
		t.Fatal(err)
	}
	if n := s.count("PUT"); n != 5 { // of 7 parts 3 were there, and the small file
		t.Errorf("the second try made %d requests, want 5: %v", n, s.Requests("PUT"))
	}

	src, to := s.breaksOff(t, c, "s3://lab/large", func() bool { return s.count("GET") == 4 })
	if _, err := c.Fetch(t.Context(), Fetch{Source: src, Dir: to}); err != nil {
		t.Fatal(err)
	}
	if n := s.count("GET"); n != 4 {
		t.Errorf("the second try made %d requests, want 4", n)
	}
	if a, b := sums(t, dir)["large"], sums(t, filepath.Join(to, ContentDir))[SingleName]; a != b {
		t.Errorf("it is %s, want %s", b, a)
	}
}

// TestGoesOnWithDamage: of what came before a break only what is still as it came is kept.
func TestGoesOnWithDamage(t *testing.T) {
	for name, tc := range map[string]struct {
		damage func(t *testing.T, dir string)
		gets   int // beside the list: what was missing, and what was damaged
	}{
		"nothing":                {func(*testing.T, string) {}, 2},
		"a file that was whole":  {func(t *testing.T, dir string) { flip(t, filepath.Join(dir, ContentDir, "a"), 2) }, 3},
		"a piece":                {func(t *testing.T, dir string) { flip(t, partialFile(t, dir), 5<<20) }, 3},
		"pieces that are zeroes": {func(t *testing.T, dir string) { cut(t, partialFile(t, dir), 0) }, 4},
		"the list":               {func(t *testing.T, dir string) { flip(t, filepath.Join(dir, manifestFile), 3) }, 3},
		"the list, cut":          {func(t *testing.T, dir string) { cut(t, filepath.Join(dir, manifestFile), 20) }, 3},
		"a sum":                  {func(t *testing.T, dir string) { flip(t, filepath.Join(dir, sumsFile), sumSize+18) }, 3},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := newServer(t), testClient()
			c.Parallel, c.pieceSize = 1, 8<<20
			dir := files(t, map[string]int{"a": 3, "b": 32 << 20})
			if err := put(t, c, s, dir, "s3://lab/d/"); err != nil {
				t.Fatal(err)
			}
			fetched := func() int { return len(s.Requests("GET /lab/d/")) } // less the list
			src, to := s.breaksOff(t, c, "s3://lab/d/", func() bool { return fetched() == 4 })
			tc.damage(t, to)
			if _, err := c.Fetch(t.Context(), Fetch{Source: src, Dir: to}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(sums(t, dir), sums(t, filepath.Join(to, ContentDir))); diff != "" {
				t.Errorf("(-sent +fetched):\n%s", diff)
			}
			if n := fetched(); n != tc.gets {
				t.Errorf("%d requests, want %d", n, tc.gets)
			}
			if _, err := os.Stat(filepath.Join(to, partsDir)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("pieces are left: %v", err)
			}
		})
	}
}

// TestGoesOnWithOthers: what the source had before a break, and has no more, is not there.
func TestGoesOnWithOthers(t *testing.T) {
	s, c := newServer(t), testClient()
	c.Parallel = 1
	if err := put(t, c, s, files(t, map[string]int{"a/old": 3, "b": 3, "c": 3, "z": 3}), "s3://lab/d/"); err != nil {
		t.Fatal(err)
	}
	_, to := s.breaksOff(t, c, "s3://lab/d/", func() bool { return len(s.Requests("GET /lab/d/z")) > 0 })
	now := files(t, map[string]int{"a/new": 3, "b/is a directory": 3, "z": 3})
	other, err := c.S3Source(s.at, "s3://lab/e/")
	if err != nil {
		t.Fatal(err)
	}
	if err := put(t, c, s, now, "s3://lab/e/"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Fetch(t.Context(), Fetch{Source: other, Dir: to}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sums(t, now), sums(t, filepath.Join(to, ContentDir))); diff != "" {
		t.Errorf("(-at the source +here):\n%s", diff)
	}
}

// breaksOff begins to fetch what is at a URI, which is broken off at the first request where
// at holds. It says what was fetched, and where to.
func (s *server) breaksOff(t *testing.T, c *Client, uri string, at func() bool) (src Source, dir string) {
	t.Helper()
	dead, kill := context.WithCancel(t.Context())
	s.Hook(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == "GET" && at() {
			kill()
			panic(http.ErrAbortHandler)
		}
		return false
	})
	dir = t.TempDir()
	src, err := c.S3Source(s.at, uri)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Fetch(dead, Fetch{Source: src, Dir: dir}); !errors.Is(err, context.Canceled) {
		t.Fatalf("killed: %v", err)
	}
	s.Hook(nil)
	return src, dir
}

// partialFile is the file of the only object of which a part is here.
func partialFile(t *testing.T, dir string) string {
	t.Helper()
	all, err := os.ReadDir(filepath.Join(dir, partsDir))
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 1 {
		t.Fatalf("parts: %v", all)
	}
	return filepath.Join(dir, partsDir, all[0].Name())
}

// cut makes a file end somewhere.
func cut(t *testing.T, path string, at int64) {
	t.Helper()
	if err := os.Truncate(path, at); err != nil {
		t.Fatal(err)
	}
}

// flip changes a byte of a file.
func flip(t *testing.T, path string, at int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 0x10
	if _, err := f.WriteAt(b, at); err != nil {
		t.Fatal(err)
	}
}
