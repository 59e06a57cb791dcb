package logs

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestLogSince: where the output of a time begins, to the second; the marks stay
// few however often something is written.
func TestLogSince(t *testing.T) {
	dir := t.TempDir()
	l, err := Open(dir, func() bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if off, err := l.since(time.Unix(5, 0)); off != 0 || err != nil {
		t.Errorf("of a log without marks: %d, %v", off, err)
	}
	w, err := NewWriter(dir, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	now := time.Unix(1000, 0)
	w.now = func() time.Time { return now }
	write := func(after time.Duration) {
		now = now.Add(after)
		if _, err := w.Write([]byte("0123456789")); err != nil {
			t.Fatal(err)
		}
	}
	write(0)                      // 1000.0: mark at 0
	write(100 * time.Millisecond) // in its span
	write(900 * time.Millisecond) // 1001.0: mark at 20
	write(time.Minute)            // 1061.0: mark at 30
	for range 1000 {
		write(0)
	}
	for _, tc := range []struct {
		at   time.Time
		want int64
	}{
		{time.Unix(0, 0), 0}, {time.Unix(1000, 0), 0}, {time.Unix(1000, 500e6), 0}, {time.Unix(1001, 500e6), 20},
		{time.Unix(1030, 0), 30}, {time.Unix(1061, 0), 30}, {time.Unix(1070, 0), 10040},
	} {
		if got, err := l.since(tc.at); got != tc.want || err != nil {
			t.Errorf("since %v: %d, %v; want %d", tc.at, got, err, tc.want)
		}
	}
	if st, err := os.Stat(filepath.Join(dir, fileTimes)); err != nil || st.Size() != 3*markSize {
		t.Errorf("the file of marks: %v, %v", st, err)
	}
	if a, b := markSpan(0), markSpan(3*marksPerSpan); a != time.Second || b != 8*time.Second {
		t.Errorf("spans %v and %v", a, b)
	}
}

// TestDamagedMarks: whichever byte of the marks the disk changes, no output is left out that was asked for, and at most
// that of the mark before it is given too; marks of an earlier version are read as they are.
func TestDamagedMarks(t *testing.T) {
	dir := t.TempDir()
	l, err := Open(dir, func() bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	w, err := NewWriter(dir, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Unix(1_800_000_000, 0)
	now := begin
	w.now = func() time.Time { return now }
	const marks, step = 4, 10
	var old []byte
	for i := range marks {
		if _, err := w.Write([]byte("0123456789")); err != nil {
			t.Fatal(err)
		}
		old = binary.BigEndian.AppendUint64(old, uint64(i*step))
		old = binary.BigEndian.AppendUint64(old, uint64(now.UnixMilli()))
		now = now.Add(time.Minute)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, fileTimes)
	whole, err := os.ReadFile(file)
	if err != nil || len(whole) != marks*markSize {
		t.Fatalf("%d bytes, %v", len(whole), err)
	}
	since := func(content []byte, at int) int64 {
		t.Helper()
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		off, err := l.since(begin.Add(time.Duration(at) * time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		return off
	}
	for at := range marks + 1 {
		want := int64(at * step)
		if got := since(whole, at); got != want {
			t.Errorf("since minute %d: %d, want %d", at, got, want)
		}
		if got := since(old, at); got != want {
			t.Errorf("since minute %d, by marks without sums: %d, want %d", at, got, want)
		}
		for i := range whole {
			damaged := bytes.Clone(whole)
			damaged[i] ^= 4
			if got := since(damaged, at); got > want || got < want-2*step {
				t.Errorf("since minute %d, with byte %d changed: %d, and %d without", at, i, got, want)
			}
		}
	}
	clear(whole[markSize:])
	if got := since(whole, marks); got != 0 {
		t.Errorf("with marks that a power cut has lost: %d", got)
	}
}
