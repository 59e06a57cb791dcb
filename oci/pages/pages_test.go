package pages

import (
	"bytes"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/opencontainers/runc/libcontainer/exeseal"
)

// TestLargePages: a program that lies in large pages is the same to the last byte, and as sealed as before.
func TestLargePages(t *testing.T) {
	want := make([]byte, 5<<20+3)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range want {
		want[i] = byte(r.Uint32())
	}
	for _, size := range []int{1, 4096, 2 << 20, len(want)} {
		f, err := exeseal.CloneBinary(bytes.NewReader(want[:size]), int64(size), "gbatch-test", os.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		Enlarge(f, size)
		got := make([]byte, size)
		if _, err := f.ReadAt(got, 0); err != nil || !bytes.Equal(got, want[:size]) {
			t.Errorf("%d bytes are not as they were: %v", size, err)
		}
		if info, err := f.Stat(); err != nil || info.Size() != int64(size) || !exeseal.IsCloned(f) {
			t.Errorf("a file of %d bytes has %d, or is not sealed: %v", size, info.Size(), err)
		}
	}
}
