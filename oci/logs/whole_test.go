package logs

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestWhole: a log in memory is read as one that a Writer made is, by every selection, damaged or
// not, and becomes that one's files.
func TestWhole(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_000)
	for _, text := range []string{"", "\n", "one line\n", "no end", "a\nb\nc\n", strings.Repeat("x\n", MaxWhole/2)} {
		dir := t.TempDir()
		w, err := Resume(dir, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		w.now = func() time.Time { return at }
		if text != "" {
			if _, err := w.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		whole := Whole{Data: []byte(text), Sum: SumOf([]byte(text)), At: at}
		for _, damage := range []bool{false, true} {
			if damage && text == "" {
				continue
			}
			if damage {
				whole.Data = append([]byte{text[0] ^ 1}, text[1:]...)
				if err := os.WriteFile(filepath.Join(dir, segmentName(0)), whole.Data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if whole.Damaged() != damage {
				t.Errorf("%q: damaged %v", text, !damage)
			}
			for _, sel := range []Selection{{}, {Offset: 2}, {Offset: -1}, {Offset: 5000}, {Tail: 1}, {Tail: 2}, {Tail: 100}, {Follow: true}, {Since: at}, {Since: at.Add(time.Minute)}} {
				if diff := cmp.Diff(bodyOf(t, mustOpen(t, dir), sel), bodyOf(t, whole.Open(), sel)); diff != "" {
					t.Errorf("%.20q, damaged %v, %+v (-directory +whole):\n%s", text, damage, sel, diff)
				}
			}
			var files []File
			for _, f := range whole.Files() {
				data, err := os.ReadFile(filepath.Join(dir, f.Name))
				if err != nil {
					t.Fatal(err)
				}
				files = append(files, File{f.Name, data})
			}
			if diff := cmp.Diff(files, whole.Files()); diff != "" && text != "" {
				t.Errorf("%.20q: files (-directory +whole):\n%s", text, diff)
			}
			back, ok := WholeOf(whole.Files())
			if ok && text == "" {
				back.At = whole.At // which it does not have
			}
			if diff := cmp.Diff(whole, back); !ok || diff != "" {
				t.Errorf("%.20q: back %v (-want +got):\n%s", text, ok, diff)
			}
		}
	}
}

func mustOpen(t *testing.T, dir string) *Log {
	t.Helper()
	l, err := Open(dir, func() bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// bodyOf is what a reader gets: where it begins, and the text.
func bodyOf(t *testing.T, l *Log, sel Selection) []any {
	t.Helper()
	l.Copy = true
	b, err := l.Body(t.Context(), sel)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	text, err := io.ReadAll(b)
	if err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return []any{b.Start(), string(text)}
}

// TestNotWhole: files that are another log's are none of a whole one.
func TestNotWhole(t *testing.T) {
	good := Whole{Data: []byte("text"), Sum: SumOf([]byte("text")), At: time.UnixMilli(1_700_000_000_000)}.Files()
	log, sum, mark := good[0], good[1], good[2]
	for name, files := range map[string][]File{
		"nothing":     nil,
		"no sums":     {log, mark},
		"no time":     {log, sum},
		"twice":       {log, log, sum, mark},
		"behind":      {{segmentName(4), log.Data}, sum, mark},
		"two files":   {log, sum, mark, {segmentName(4), []byte("more")}},
		"long":        {{log.Name, make([]byte, MaxWhole+1)}, sum, mark},
		"longer":      {{log.Name, []byte("text and more")}, sum, mark},
		"two times":   {log, sum, {mark.Name, append(mark.Data, mark.Data...)}},
		"broken time": {log, sum, {mark.Name, make([]byte, markSize)}},
		"empty, sums": {{log.Name, nil}, sum, mark},
	} {
		if w, ok := WholeOf(files); ok {
			t.Errorf("%s is %+v", name, w)
		}
	}
}
