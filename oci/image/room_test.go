package image

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"gbatch/oci/image/imagetest"
)

// TestInodesArePromised: an image of many small files is refused when the disk
// has not so many left for it, and leaves it as it was.
func TestInodesArePromised(t *testing.T) {
	f := newRegistry(t)
	var many []entry
	for i := range 4000 {
		many = append(many, file(fmt.Sprintf("d%d/f%d", i%7, i), "x"))
	}
	_, s := smallDisk(t, "size=256m,nr_inodes=4000", Config{})
	_, before, err := s.disk.free()
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Pull(t.Context(), PullRequest{Ref: pushOf(t, f, many)})
	if e := wantError(t, err, Unsupported, "it does not fit on this node, which has "); e.Fault() != FaultUser || !strings.Contains(e.Detail, " files left for it") {
		t.Errorf("%s's fault: %s", e.Fault(), e.Detail)
	}
	if left := names(t, s.layout.Tmp); len(left) > 0 {
		t.Errorf("left in tmp: %v", left)
	}
	if _, after, err := s.disk.free(); err != nil || after < before-10 {
		t.Errorf("%d files free, %d before (%v)", after, before, err)
	}
	pull(t, s, pushOf(t, f, []entry{file("good", "x")}), nil)
}

// TestTwoPullsShareTheRoom: of two images at once that fit one by one and not
// together, one is refused as not fitting, and neither fills the disk.
func TestTwoPullsShareTheRoom(t *testing.T) {
	f := newRegistry(t)
	const free = 16 << 20
	_, s := smallDisk(t, "size=100m", Config{MinFree: free})
	var errs [2]error
	var g errgroup.Group
	for i := range errs {
		body := strings.Repeat(fmt.Sprintf("image %d, more or less. ", i), 50<<20/24)
		r, _ := f.push(t, fmt.Sprintf("a/b%d:1", i), build(t, imagetest.Options{Layers: [][]imagetest.File{{{Name: "big", Body: []byte(body)}}}}))
		g.Go(func() error {
			_, errs[i] = s.Pull(t.Context(), PullRequest{Ref: r})
			return nil
		})
	}
	_ = g.Wait()
	refused := 0
	for _, err := range errs {
		if err != nil {
			refused++
			if e := wantError(t, err, Unsupported, "it does not fit on this node"); e.Fault() != FaultUser {
				t.Errorf("fault of %s: %s", e.Fault(), e.Detail)
			}
		}
	}
	if refused == 0 {
		t.Error("both fit, which they cannot")
	}
	var st unix.Statfs_t
	if err := unix.Statfs(s.layout.Tmp, &st); err != nil || int64(st.Bavail)*st.Bsize < free {
		t.Errorf("%d bytes are left (%v), want %d at least", int64(st.Bavail)*st.Bsize, err, free)
	}
	if left, err := os.ReadDir(s.layout.Tmp); err != nil || len(left) > 0 {
		t.Errorf("left in tmp: %v %v", left, err)
	}
}
