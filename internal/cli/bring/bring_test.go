package bring

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"archive/tar"
	"io"
	"math"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/tree"
)

// keeper is a controller that keeps chunks in memory.
type keeper struct {
	chunks map[string][]byte
	asked  int

	mu  sync.Mutex // chunks come side by side
	put int
}

func (k *keeper) AddTree(_ context.Context, m tree.Manifest) (*api.TreeResponse, error) {
	k.asked++
	out := &api.TreeResponse{}
	for _, c := range m.Chunks {
		if k.chunks[c.Sum] == nil && !slices.Contains(out.Missing, c.Sum) {
			out.Missing = append(out.Missing, c.Sum)
		}
	}
	if len(out.Missing) == 0 {
		out.Tree = m.ID()
	}
	return out, nil
}

func (k *keeper) PutChunk(_ context.Context, sum string, data []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.put++
	k.chunks[sum] = data
	return nil
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// names are the files of a tree.
func names(t *testing.T, p *Packed) (out []string) {
	t.Helper()
	var all bytes.Buffer
	if err := p.read(t.Context(), func(_ tree.Chunk, data []byte) error { _, err := all.Write(data); return err }); err != nil {
		t.Fatal(err)
	}
	_, err := tree.Entries(&all, tree.Size{Files: math.MaxInt64, Bytes: math.MaxInt64}, func(h *tar.Header, _ io.Reader) error {
		if h.Typeflag != tar.TypeDir {
			out = append(out, h.Name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestLeftOut: the three kinds of files that say what is left out, each by its own
// rules, and which of them wins.
func TestLeftOut(t *testing.T) {
	tests := map[string]struct {
		files map[string]string
		want  []string
	}{
		"git": {map[string]string{".gitignore": "*.o\n/build/\n!keep.o\n# no\n", "a.o": "", "sub/b.o": "", "keep.o": "", "build/x": "", "sub/build/y": "", "m.c": "", ".git/HEAD": ""},
			[]string{".gitignore", "keep.o", "m.c", "sub/build/y"}},
		"git below": {map[string]string{"sub/.gitignore": "local\n", "local": "", "sub/local": "", "sub/deep/local": ""}, []string{"local", "sub/.gitignore"}},
		"docker":    {map[string]string{".dockerignore": "**/*.tmp\ndata\n!data/small\n", "a.tmp": "", "sub/b.tmp": "", "data/big": "", "data/small": ""}, []string{".dockerignore", "data/small"}},
		"own wins":  {map[string]string{".gbatchignore": "!model.pt\n*.log\n!.git\n", ".gitignore": "*.pt\n", ".dockerignore": "model.pt\n", "model.pt": "", "other.pt": "", "x.log": "", ".git/HEAD": ""}, []string{".dockerignore", ".gbatchignore", ".git/HEAD", ".gitignore", "model.pt"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, tc.files)
			p, err := Pack(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			got := names(t, p)
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("brought (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSentOnce: what the controller has is not sent again, and of what is there
// already only its name is asked.
func TestSentOnce(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"a": strings.Repeat("a", 3*tree.MaxChunk), "b": "b"})
	k := &keeper{chunks: map[string][]byte{}}
	say := func(string, ...any) {}
	send := func() string {
		p, err := Pack(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		id, err := p.Send(t.Context(), k, say)
		if err != nil || id != p.ID() {
			t.Fatalf("sent as %q, %v", id, err)
		}
		return id
	}
	first := send()
	put := k.put
	if again := send(); again != first || k.put != put || k.asked != 3 {
		t.Errorf("again: %q, %d chunks more, asked %d times", again, k.put-put, k.asked)
	}
	write(t, dir, map[string]string{"b": "other"})
	if changed := send(); changed == first || k.put > put+2 {
		t.Errorf("changed: %q, %d chunks more", changed, k.put-put)
	}
	one, err := Pack(t.Context(), filepath.Join(dir, "b"))
	if err != nil || one.File != "b" {
		t.Errorf("one file: %v, %v", one, err)
	}
	if _, err := Pack(t.Context(), filepath.Join(dir, "none")); !os.IsNotExist(err) {
		t.Errorf("nothing: %v", err)
	}
}
