package tree

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var anything = Size{Files: math.MaxInt64, Bytes: math.MaxInt64}

// pack is a directory's archive and its chunks.
func pack(t *testing.T, dir string) ([]byte, Manifest) {
	t.Helper()
	var all bytes.Buffer
	m, _, err := Packing{Dir: dir, Most: anything, Emit: func(c Chunk, data []byte) error {
		if SumOf(data) != c.Sum || int64(len(data)) != c.Size {
			t.Errorf("chunk %v is not what it is called", c)
		}
		all.Write(data)
		return nil
	}}.Pack(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Check(); err != nil {
		t.Error(err)
	}
	return all.Bytes(), m
}

// look is what is in a directory: mode and content by name.
func look(t *testing.T, dir string) map[string]string {
	t.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := ""
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			text, err = os.Readlink(path)
		case info.Mode().IsRegular():
			var b []byte
			b, err = os.ReadFile(path)
			text = string(b)
		}
		name, _ := filepath.Rel(dir, path)
		got[name] = fmt.Sprintf("%v %s", info.Mode(), text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// put makes a file with all directories above it.
func put(t *testing.T, dir, name, text string, mode fs.FileMode) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// sample is a directory with all that a tree keeps.
func sample(t *testing.T) string {
	dir := t.TempDir()
	put(t, dir, "run.sh", "#!/bin/sh\n", 0o755)
	put(t, dir, "a/b/data.bin", strings.Repeat("0123456789", 200_000), 0o640)
	put(t, dir, "a.txt", "", 0o444)
	put(t, dir, "ä/"+strings.Repeat("long", 60)+"/x", "x", 0o600)
	for link, to := range map[string]string{"a/up": "../run.sh", "here": ".", "plain": "./a.txt"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o750); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestThereAndBack: what is unpacked is what was packed, and the same content has
// the same chunks wherever and whenever it is.
func TestThereAndBack(t *testing.T) {
	dir := sample(t)
	data, m := pack(t, dir)
	out := t.TempDir()
	root, err := os.OpenRoot(out)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	got, err := Unpack(bytes.NewReader(data), root, anything)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Size{Files: 12, Bytes: 2_000_011}); got != want {
		t.Errorf("it has %v, want %v", got, want)
	}
	want := look(t, dir)
	want["plain"] = strings.Replace(want["plain"], "./", "", 1)
	if diff := cmp.Diff(want, look(t, out)); diff != "" {
		t.Errorf("unpacked (-want +got):\n%s", diff)
	}
	if _, again := pack(t, out); again.ID() != m.ID() {
		t.Error("the copy is another tree")
	}
}

// TestWhatChangesIsSent: of a large directory in which one file has changed, most
// chunks are the same.
func TestWhatChangesIsSent(t *testing.T) {
	dir := t.TempDir()
	for i := range 2000 {
		put(t, dir, fmt.Sprintf("d%02d/f%04d", i%20, i), strings.Repeat(fmt.Sprint(i), 500), 0o644)
	}
	_, before := pack(t, dir)
	put(t, dir, "d07/f0007", "now something else, and shorter", 0o644)
	put(t, dir, "d07/more", "one more", 0o644)
	_, after := pack(t, dir)
	had := map[Chunk]bool{}
	for _, c := range before.Chunks {
		had[c] = true
	}
	changed := 0
	for _, c := range after.Chunks {
		if !had[c] {
			changed++
		}
	}
	if changed == 0 || changed > 2 || len(after.Chunks) < 10 {
		t.Errorf("%d of %d chunks are others", changed, len(after.Chunks))
	}
}

// archive is a tar of headers as they are; the content of a file is its name.
func archive(t testing.TB, headers ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		if h.Typeflag == tar.TypeReg {
			h.Size = int64(len(h.Name))
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := io.WriteString(w, h.Name); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func file(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644} }
func folder(name string) tar.Header {
	return tar.Header{Name: name + "/", Typeflag: tar.TypeDir, Mode: 0o755}
}
func link(name, to string) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: to, Mode: 0o777}
}

// TestHostileTrees: what somebody else has packed is refused with what is wrong.
func TestHostileTrees(t *testing.T) {
	setID := file("x")
	setID.Mode = 0o4755
	attributes := file("x")
	attributes.PAXRecords = map[string]string{"SCHILY.xattr.security.capability": "x"}
	tests := map[string]struct {
		headers []tar.Header
		want    string
	}{
		"up":              {[]tar.Header{file("../x")}, "no name below"},
		"up within":       {[]tar.Header{folder("a"), file("a/../../x")}, "no name below"},
		"absolute":        {[]tar.Header{file("/etc/passwd")}, "no name below"},
		"link out":        {[]tar.Header{link("x", "../y")}, "leads out"},
		"absolute link":   {[]tar.Header{link("x", "/etc")}, "not in the tree"},
		"links together":  {[]tar.Header{folder("a"), folder("a/b"), link("a/b/up", "../.."), link("v", "a/b/up/..")}, "leads out of the tree or is not written plainly"},
		"through a link":  {[]tar.Header{folder("d"), link("l", "d"), file("l/x")}, "in no directory"},
		"no directory":    {[]tar.Header{file("a/x")}, "in no directory"},
		"below a file":    {[]tar.Header{file("a"), file("a/x")}, "in no directory"},
		"twice":           {[]tar.Header{file("x"), file("x")}, "there twice"},
		"other order":     {[]tar.Header{file("y"), file("x")}, "there twice, or not at its place"},
		"set-id":          {[]tar.Header{setID}, "set-id"},
		"device":          {[]tar.Header{{Name: "null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}}, "neither a file"},
		"fifo":            {[]tar.Header{{Name: "p", Typeflag: tar.TypeFifo}}, "neither a file"},
		"hard link":       {[]tar.Header{file("x"), {Name: "y", Typeflag: tar.TypeLink, Linkname: "x"}}, "neither a file"},
		"attributes":      {[]tar.Header{attributes}, "which a tree has not"},
		"too many":        {[]tar.Header{file("1"), file("2"), file("3"), file("4"), file("5")}, "more than 4 files"},
		"too much":        {[]tar.Header{file(strings.Repeat("x", 200))}, "have more than"},
		"name of nothing": {[]tar.Header{file("a//b")}, "no name below"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			root, err := os.OpenRoot(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			_, err = Unpack(bytes.NewReader(archive(t, tc.headers...)), root, Size{Files: 4, Bytes: 100})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// TestNotPacked: what cannot go along is said with its path.
func TestNotPacked(t *testing.T) {
	tests := map[string]struct {
		make func(path string) error
		want string
	}{
		"link out": {func(p string) error { return os.Symlink("/etc/passwd", p) }, "/x\" is a link"},
		"set-id":   {func(p string) error { return os.WriteFile(p, nil, 0o600) }, "set-user-id"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x")
			err := tc.make(path)
			if err == nil && name == "set-id" {
				err = os.Chmod(path, 0o755|fs.ModeSetuid)
			}
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = Packing{Dir: filepath.Dir(path), Most: anything, Emit: func(Chunk, []byte) error { return nil }}.Pack(t.Context())
			if err == nil || !strings.Contains(err.Error(), strings.TrimPrefix(tc.want, "/")) && !strings.Contains(err.Error(), "\"x\" is a link") {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// FuzzEntries: of what is taken nothing is outside, and nothing is there twice.
func FuzzEntries(f *testing.F) {
	f.Add(archive(f, folder("a"), file("a/x"), link("a/y", "x")))
	f.Add(archive(f, link("x", "../y")))
	f.Fuzz(func(t *testing.T, data []byte) {
		seen := map[string]bool{}
		_, _ = Entries(bytes.NewReader(data), Size{Files: 100, Bytes: 1 << 20}, func(h *tar.Header, _ io.Reader) error {
			if seen[h.Name] || !filepath.IsLocal(h.Name) || h.Mode&^0o777 != 0 {
				t.Errorf("took %q with mode %o", h.Name, h.Mode)
			}
			seen[h.Name] = true
			if h.Typeflag == tar.TypeSymlink && !filepath.IsLocal(filepath.Join(filepath.Dir(h.Name), h.Linkname)) {
				t.Errorf("took a link from %q to %q", h.Name, h.Linkname)
			}
			return nil
		})
	})
}
