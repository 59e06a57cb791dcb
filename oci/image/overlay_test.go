package image

import (
	"archive/tar"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"golang.org/x/sys/unix"

	"gbatch/oci/image/imagetest"
)

// mount shows an image as a container sees it, or skips.
func mount(t *testing.T, img *Image) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{"upper", "work", "merged"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	lower := slices.Clone(img.Layers)
	slices.Reverse(lower)
	merged := filepath.Join(dir, "merged")
	options := "lowerdir=" + strings.Join(lower, ":") + ",upperdir=" + filepath.Join(dir, "upper") + ",workdir=" + filepath.Join(dir, "work")
	if err := unix.Mount("overlay", merged, "overlay", unix.MS_NODEV, options); err != nil {
		t.Skipf("SKIPPED: this machine mounts no overlay: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(merged, 0); err != nil {
			t.Error(err)
		}
	})
	return merged
}

// imageOf makes an image of tars.
func imageOf(t *testing.T, layers ...[]entry) v1.Image {
	t.Helper()
	img := v1.Image(empty.Image)
	for _, entries := range layers {
		l, err := imagetest.Layer(tarOf(entries), false)
		if err == nil {
			img, err = mutate.AppendLayers(img, l)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	img, err := imagetest.WithConfig(img, v1.Config{}, "")
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func file(name, body string) entry { return entry{h: tar.Header{Name: name, Mode: 0o644}, body: body} }

func directory(name string, mode int64, uid int) entry {
	return entry{h: tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: mode, Uid: uid, Gid: uid}}
}

// What a container sees of whiteouts, whatever their order in the layer.
func TestWhiteouts(t *testing.T) {
	f := newRegistry(t)
	base := []entry{directory("d", 0o755, 0), file("d/old", "1"), file("gone", "1"), directory("dir", 0o755, 0), file("dir/gone", "1"), file("kept", "1"),
		directory("again", 0o755, 0), file("again/old", "1"), directory("before", 0o755, 0), file("before/old", "1"), file("file", "old")}
	upper := []entry{
		file("d/.wh..wh..opq", ""), file("d/new", "2"),
		file(".wh.gone", ""), file("dir/.wh.gone", ""),
		file(".wh.again", ""), directory("again", 0o755, 0), file("again/new", "2"), // whiteout first
		directory("before", 0o755, 0), file("before/new", "2"), file(".wh.before", ""), // whiteout last
		file(".wh.file", ""), file("file", "new"),
	}
	r, _ := f.push(t, "w:1", imageOf(t, base, upper))
	merged := mount(t, pull(t, open(t, Config{}), r, nil))
	want := map[string][]string{
		".": {"again", "before", "d", "dir", "file", "kept"}, "d": {"new"}, "dir": nil, "again": {"new"}, "before": {"new"},
	}
	for dir, list := range want {
		if diff := cmp.Diff(list, names(t, filepath.Join(merged, dir))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", dir, diff)
		}
	}
	if body, _ := os.ReadFile(filepath.Join(merged, "file")); string(body) != "new" {
		t.Errorf("file holds %q", body)
	}
}

// A layer may hold tmp/x without saying what tmp is like. Then tmp stays as
// lower layers made it, except where these say nothing that still counts.
func TestImplicitDirectories(t *testing.T) {
	f := newRegistry(t)
	base := []entry{
		directory("tmp", 0o1777, 0), directory("home", 0o755, 0), directory("home/u", 0o700, 1000), directory("home/u/deep", 0o750, 1000),
		directory("gone", 0o700, 7), directory("opaque", 0o700, 7), directory("again", 0o700, 7), directory("plain", 0o755, 0),
	}
	middle := []entry{file(".wh.gone", ""), file("tmp/a", "x"), file("home/u/deep/f", "x")}
	top := []entry{file("tmp/b", "x"), file("gone/f", "x"), file("opaque/.wh..wh..opq", ""), file("plain/f", "x"), directory("again", 0o711, 9), file("again/f", "x"), file("made/f", "x")}
	r, _ := f.push(t, "i:1", imageOf(t, base, middle, top))
	s := open(t, Config{})
	img := pull(t, s, r, nil)
	merged := mount(t, img)
	type attributes struct{ Mode, UID uint32 }
	want := map[string]attributes{
		"tmp": {0o1777, 0}, "home": {0o755, 0}, "home/u": {0o700, 1000}, "home/u/deep": {0o750, 1000},
		"gone": {0o755, 0}, "opaque": {0o755, 0}, "again": {0o711, 9}, "plain": {0o755, 0}, "made": {0o755, 0},
	}
	got := map[string]attributes{}
	for name := range want {
		var st unix.Stat_t
		if err := unix.Lstat(filepath.Join(merged, name), &st); err != nil {
			t.Fatal(err)
		}
		got[name] = attributes{st.Mode & 0o7777, st.Uid}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, name := range []string{"tmp/a", "tmp/b", "home/u/deep/f", "gone/f", "plain/f", "made/f"} {
		if _, err := os.Lstat(filepath.Join(merged, name)); err != nil {
			t.Error(err)
		}
	}
	// The correction belongs to this stack, not to the layer.
	r, _ = f.push(t, "j:1", imageOf(t, []entry{directory("tmp", 0o700, 5)}, middle))
	var st unix.Stat_t
	if err := unix.Lstat(filepath.Join(mount(t, pull(t, s, r, nil)), "tmp"), &st); err != nil || st.Mode&0o7777 != 0o700 || st.Uid != 5 {
		t.Errorf("tmp of the other image: mode %o, owner %d, %v", st.Mode, st.Uid, err)
	}
}

// Ordinary layers describe their directories and need no correction.
func TestOrdinaryImageHasOneDirectoryPerLayer(t *testing.T) {
	f := newRegistry(t)
	r, _ := f.push(t, "o:1", small(t, "x"))
	if img := pull(t, open(t, Config{}), r, nil); len(img.Layers) != 2 {
		t.Errorf("got %v", img.Layers)
	}
}

func TestSpecialFilesAreKept(t *testing.T) {
	f := newRegistry(t)
	r, _ := f.push(t, "s:1", imageOf(t, []entry{
		{h: tar.Header{Name: "su", Mode: 0o4755, Uid: 0}, body: "x"},
		{h: tar.Header{Name: "mine", Mode: 0o640, Uid: 1000, Gid: 44}, body: "x"},
		{h: tar.Header{Typeflag: tar.TypeLink, Name: "hard", Linkname: "mine", Mode: 0o640, Uid: 1000, Gid: 44}},
		{h: tar.Header{Typeflag: tar.TypeSymlink, Name: "soft", Linkname: "/etc/passwd"}},
	}))
	merged := mount(t, pull(t, open(t, Config{}), r, nil))
	var su, mine, hard unix.Stat_t
	for name, st := range map[string]*unix.Stat_t{"su": &su, "mine": &mine, "hard": &hard} {
		if err := unix.Lstat(filepath.Join(merged, name), st); err != nil {
			t.Fatal(err)
		}
	}
	if su.Mode&0o7777 != 0o4755 || mine.Uid != 1000 || mine.Gid != 44 || mine.Ino != hard.Ino {
		t.Errorf("su %o, mine %d:%d, links %d and %d", su.Mode, mine.Uid, mine.Gid, mine.Ino, hard.Ino)
	}
	if to, _ := os.Readlink(filepath.Join(merged, "soft")); to != "/etc/passwd" {
		t.Errorf("soft leads to %q", to)
	}
}
