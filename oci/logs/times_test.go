package logs

import (
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
	if off, err := l.Since(time.Unix(5, 0)); off != 0 || err != nil {
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
		if got, err := l.Since(tc.at); got != tc.want || err != nil {
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
