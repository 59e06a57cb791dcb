package lease

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"gbatch/oci/atomicfile"
)

// TestDamagedLimit: a limit with or without a sum is read; whichever byte the disk changes of it, it stays what it was, which is
// said once; and a new one counts again.
func TestDamagedLimit(t *testing.T) {
	const text = `{"runMs":90000,"signal":15,"graceMs":3000}`
	want := Limit{RunMS: 90_000, Signal: 15, GraceMS: 3_000}
	file := filepath.Join(t.TempDir(), "limit.json")
	write := func(content []byte) {
		t.Helper()
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	whole := atomicfile.Sum([]byte(text))
	for at := range whole {
		for _, with := range []byte{0x01, 0x04, 0x2a} {
			l := lastLimit{file: file}
			damaged := bytes.Clone(whole)
			damaged[at] ^= with
			write(damaged)
			if got, err := l.read(); got != (Limit{}) || err == nil {
				t.Fatalf("before any was read, byte %d by %#x: %+v, %v", at, with, got, err)
			}
			write(whole)
			if got, err := l.read(); got != want || err != nil {
				t.Fatalf("the whole file: %+v, %v", got, err)
			}
			write(damaged)
			if got, err := l.read(); got != want || err == nil {
				t.Fatalf("byte %d by %#x: %+v, %v", at, with, got, err)
			}
			if got, err := l.read(); got != want || err != nil {
				t.Fatalf("byte %d by %#x, the second time: %+v, %v", at, with, got, err)
			}
		}
	}
	l := lastLimit{file: file}
	write([]byte(text)) // of an earlier version
	if got, err := l.read(); got != want || err != nil {
		t.Errorf("without a sum: %+v, %v", got, err)
	}
}
