package logs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// written makes a log of so many bytes in pieces of many sizes, each line with its
// number, and gives its directory and its text.
func written(t *testing.T, size int, limits Limits) (dir, text string) {
	t.Helper()
	dir = t.TempDir()
	w, err := NewWriter(dir, limits)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	dice := rand.New(rand.NewPCG(uint64(size), 0))
	for b.Len() < size {
		piece := strings.Repeat(fmt.Sprintf("line %d\n", b.Len()), 1+dice.IntN(400))
		b.WriteString(piece)
		if _, err := io.WriteString(w, piece); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, b.String()
}

// flip changes a bit of a file; -1 is its last byte.
func flip(t *testing.T, path string, at int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && at < 0 {
		at += st.Size()
	}
	var b [1]byte
	if _, err := f.ReadAt(b[:], at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 0x10
	if _, err := f.WriteAt(b[:], at); err != nil {
		t.Fatal(err)
	}
}

// pipeFor puts a named pipe in the place of a file: who opens it without care waits for ever.
func pipeFor(t *testing.T, path string) {
	t.Helper()
	if err := errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)); err != nil {
		t.Fatal(err)
	}
}

// TestDamagedLog: what the disk does to a log's files is told where it is, to the block, and the rest is
// served as it was; what is not covered by sums is served as it is.
func TestDamagedLog(t *testing.T) {
	const first, first2 = "00000000000000000000.log", "00000000000000000000.sum"
	damaged := func(text string, from, to int) string {
		return text[:from] + fmt.Sprintf("\n[gbatch: %d bytes of output are damaged on the disk and left out]\n", to-from) + text[to:]
	}
	for name, tc := range map[string]struct {
		do   func(t *testing.T, dir string)
		want func(text string) string
	}{
		"whole":            {func(*testing.T, string) {}, func(s string) string { return s }},
		"a bit":            {func(t *testing.T, dir string) { flip(t, dir+"/"+first, 9000) }, func(s string) string { return damaged(s, 8192, 12288) }},
		"the first bit":    {func(t *testing.T, dir string) { flip(t, dir+"/"+first, 0) }, func(s string) string { return damaged(s, 0, 4096) }},
		"two blocks":       {func(t *testing.T, dir string) { flip(t, dir+"/"+first, 9000); flip(t, dir+"/"+first, 13000) }, func(s string) string { return damaged(s, 8192, 16384) }},
		"the last":         {func(t *testing.T, dir string) { flip(t, dir+"/"+first, -1) }, func(s string) string { return damaged(s, (len(s)-1)/4096*4096, len(s)) }},
		"a sum":            {func(t *testing.T, dir string) { flip(t, dir+"/"+first2, 8+7) }, func(s string) string { return damaged(s, 4096, 8192) }},
		"a sum's length":   {func(t *testing.T, dir string) { flip(t, dir+"/"+first2, 8+2) }, func(s string) string { return damaged(s, 4096, 8192) }},
		"cut":              {func(t *testing.T, dir string) { os.Truncate(dir+"/"+first, 100_000) }, func(s string) string { return damaged(s, 98304, len(s)) }},
		"empty":            {func(t *testing.T, dir string) { os.Truncate(dir+"/"+first, 0) }, func(s string) string { return damaged(s, 0, len(s)) }},
		"gone":             {func(t *testing.T, dir string) { os.Remove(dir + "/" + first) }, func(s string) string { return damaged(s, 0, len(s)) }},
		"cannot be read":   {func(t *testing.T, dir string) { os.Remove(dir + "/" + first); os.Mkdir(dir+"/"+first, 0o700) }, func(s string) string { return damaged(s, 0, len(s)) }},
		"a pipe":           {func(t *testing.T, dir string) { pipeFor(t, dir+"/"+first) }, func(s string) string { return damaged(s, 0, len(s)) }},
		"pipes":            {func(t *testing.T, dir string) { pipeFor(t, dir+"/"+first); pipeFor(t, dir+"/"+fileTimes) }, func(s string) string { return damaged(s, 0, len(s)) }},
		"no sums":          {func(t *testing.T, dir string) { os.Remove(dir + "/" + first2) }, func(s string) string { return s }},
		"half of the sums": {func(t *testing.T, dir string) { os.Truncate(dir+"/"+first2, 100); flip(t, dir+"/"+first, 0) }, func(s string) string { return damaged(s, 0, 4096) }},
	} {
		t.Run(name, func(t *testing.T) {
			dir, text := written(t, 200_000, Limits{})
			tc.do(t, dir)
			if got, want := readAll(t, dir), tc.want(text); got != want {
				t.Errorf("%d bytes are read, want %d; they differ at %d", len(got), len(want), len(commonPrefix(got, want)))
			}
			l, err := Open(dir, func() bool { return true })
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			bad, err := l.Verify(func(int64) error { return nil })
			if _, after, found := strings.Cut(tc.want(text), "[gbatch: "); err != nil || found != (bad > 0) || found && !strings.HasPrefix(after, fmt.Sprint(bad, " ")) {
				t.Errorf("%d bytes are damaged, %v", bad, err)
			}
			if end, err := l.End(); err != nil || end != int64(len(text)) {
				t.Errorf("it ends at %d, %v; want %d", end, err, len(text))
			}
		})
	}
}

func commonPrefix(a, b string) string {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return a[:n]
}

// TestDamagedLogOfManyFiles: rotation removes sums with their files, a lost file is told apart
// from one that was dropped, and the last lines say what is missing of them.
func TestDamagedLogOfManyFiles(t *testing.T) {
	dir, text := written(t, 400_000, Limits{MaxBytes: 6 * 16384})
	offs, err := segments(dir)
	if err != nil || len(offs) != logSegments {
		t.Fatal(offs, err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 2*logSegments+1 {
		t.Errorf("%d files, %v", len(files), err)
	}
	if err := os.Remove(filepath.Join(dir, segmentName(offs[3]))); err != nil {
		t.Fatal(err)
	}
	want := text[:16384] + fmt.Sprintf("\n[gbatch: %d bytes of output are not kept: the log's size limit was reached]\n", offs[1]-16384) +
		text[offs[1]:offs[3]] + "\n[gbatch: 16384 bytes of output are damaged on the disk and left out]\n" + text[offs[4]:]
	if got := readAll(t, dir); got != want {
		t.Errorf("%d bytes are read, want %d; they differ at %d", len(got), len(want), len(commonPrefix(got, want)))
	}
	l, err := Open(dir, func() bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	body, err := l.Body(t.Context(), Selection{Tail: 100_000})
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	got, err := io.ReadAll(body)
	if err != nil || !strings.HasPrefix(string(got), "\n[gbatch: 16384 bytes of output are damaged") {
		t.Errorf("the last lines begin with %.100q, %v", got, err)
	}
}

// TestResumeDamaged: the copy of a log is gone on with before what is damaged of its last file, so that
// whoever has those bytes sends them again; and a tail without sums gets them.
func TestResumeDamaged(t *testing.T) {
	for name, tc := range map[string]struct {
		do  func(t *testing.T, dir string)
		end int64
	}{
		"whole":     {func(*testing.T, string) {}, 100_000},
		"a bit":     {func(t *testing.T, dir string) { flip(t, filepath.Join(dir, segmentName(0)), 50_000) }, 50_000 / 4096 * 4096},
		"cut":       {func(t *testing.T, dir string) { os.Truncate(filepath.Join(dir, segmentName(0)), 70_000) }, 70_000 / 4096 * 4096},
		"gone":      {func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, segmentName(0))) }, 0},
		"uncovered": {func(t *testing.T, dir string) { os.Truncate(filepath.Join(dir, sumName(0)), 80) }, 100_000},
	} {
		t.Run(name, func(t *testing.T) {
			dir, text := t.TempDir(), bytes.Repeat([]byte("0123456789"), 20_000)
			w, err := Resume(dir, Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(text[:100_000]); err != nil {
				t.Fatal(err)
			}
			w.Close()
			tc.do(t, dir)
			if w, err = Resume(dir, Limits{}); err != nil || w.End() != tc.end {
				t.Fatalf("it goes on at %d, %v; want %d", w.End(), err, tc.end)
			}
			for at := w.End(); at < int64(len(text)); at = w.End() {
				if _, err := w.Write(text[at:min(at+777, int64(len(text)))]); err != nil {
					t.Fatal(err)
				}
			}
			w.Close()
			if got := readAll(t, dir); got != string(text) {
				t.Errorf("%d bytes are read, which differ at %d", len(got), len(commonPrefix(got, string(text))))
			}
			flip(t, filepath.Join(dir, segmentName(0)), 150_000)
			if got := readAll(t, dir); !strings.Contains(got, "4096 bytes of output are damaged") {
				t.Error("what came then has no sums")
			}
		})
	}
}

// FuzzDamagedLog: whatever a disk does to a log's files, reading it ends, gives at most what is there, and
// each byte that is given at a place that sums cover is the one that was written there.
func FuzzDamagedLog(f *testing.F) {
	f.Add([]byte{}, uint16(0), uint16(0))
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8}, uint16(9), uint16(4095))
	f.Fuzz(func(t *testing.T, junk []byte, inLog, inSums uint16) {
		dir, text := written(t, 20_000, Limits{})
		for path, at := range map[string]int64{segmentName(0): int64(inLog) % 20_000, sumName(0): int64(inSums) % 48} {
			file, err := os.OpenFile(filepath.Join(dir, path), os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			if path == segmentName(0) {
				_, err = file.WriteAt(junk[:min(len(junk), 20_000-int(at))], at)
			} else {
				_, err = file.WriteAt(junk[:min(len(junk), 4)], at/sumSize*sumSize+4) // the sums and not the lengths
			}
			if file.Close(); err != nil {
				t.Fatal(err)
			}
		}
		l, err := Open(dir, func() bool { return true })
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		for off, n := int64(0), 0; ; n++ {
			c, err := l.ReadAt(off)
			if err == io.EOF {
				break
			}
			if err != nil || n > 10 {
				t.Fatal(n, err)
			}
			if want := text[c.Offset : c.Offset+int64(len(c.Data))]; string(c.Data) != want {
				t.Fatalf("other bytes at %d", c.Offset)
			}
			off = c.Offset + int64(len(c.Data))
		}
	})
}
