package sparse

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// Whatever was written, the parts are in order and within the size, and outside
// of them are zeros.
func TestWritten(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 50 {
		f, err := os.Create(filepath.Join(t.TempDir(), "file"))
		if err != nil {
			t.Fatal(err)
		}
		for range rnd.IntN(4) {
			if _, err := f.WriteAt(bytes.Repeat([]byte{1}, 1+rnd.IntN(20_000)), rnd.Int64N(1<<20)); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Truncate(1 << 20); err != nil {
			t.Fatal(err)
		}
		check(t, f, rnd.Int64N(1<<20))
		check(t, f, 1<<20)
		f.Close()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func check(t *testing.T, f *os.File, size int64) {
	t.Helper()
	all := make([]byte, size)
	if _, err := f.ReadAt(all, 0); err != nil && size > 0 {
		t.Fatal(err)
	}
	last := int64(0)
	for from, until := range Written(f, size) {
		if from < last || until <= from || until > size {
			t.Errorf("after %d of %d comes the part from %d to %d", last, size, from, until)
			return
		}
		clear(all[from:until])
		last = until
	}
	if at := bytes.IndexByte(all, 1); at >= 0 {
		t.Errorf("byte %d of %d was written and is in no part", at, size)
	}
}

func TestHolesAreLeftOut(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(1 << 40); err != nil {
		t.Fatal(err)
	}
	for from, until := range Written(f, 1<<40) {
		if from == 0 && until == 1<<40 {
			t.Skip("SKIPPED: this file system tells nothing of holes")
		}
		t.Errorf("a part from %d to %d, of a file that nobody wrote to", from, until)
	}
}

// A pipe has no offsets, as a file of some file systems knows no holes.
func TestWithoutHolesAllIsWritten(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	n := 0
	for from, until := range Written(r, 100) {
		if n++; from != 0 || until != 100 {
			t.Errorf("the part from %d to %d, want all 100", from, until)
		}
	}
	if n != 1 {
		t.Errorf("%d parts, want 1", n)
	}
}
