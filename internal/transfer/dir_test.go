package transfer

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func openRoot(t *testing.T, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

// TestWalk: plain files in the order of names, as many as may be, of as many
// entries as may be looked at.
func TestWalk(t *testing.T) {
	top := files(t, map[string]int{"b": 1, "a/x.pt": 1, "a/y": 1, "c/d/z.pt": 1})
	for _, err := range []error{os.Symlink("b", filepath.Join(top, "link")), os.Symlink("..", filepath.Join(top, "c/up")), unix.Mkfifo(filepath.Join(top, "pipe"), 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	dir := Dir{Root: openRoot(t, top)}
	for pattern, want := range map[string][]string{"": {"a/x.pt", "a/y", "b", "c/d/z.pt"}, "*.pt": {"a/x.pt", "c/d/z.pt"}, "a/*": {"a/x.pt", "a/y"}, "no": nil} {
		got, err := dir.Walk(t.Context(), pattern)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%q: %v (-want +got):\n%s", pattern, err, diff)
		}
	}
	for _, tc := range []struct {
		files, entries int
		want           string
	}{{4, 10, ""}, {3, 10, "has more than 3 files"}, {4, 9, "has more than 9 files and directories"}} {
		w := &walk{dir: dir, mostFiles: tc.files, mostEntries: tc.entries}
		err := w.into(t.Context(), ".")
		if (err == nil) != (tc.want == "") {
			t.Errorf("%+v: %v", tc, err)
		}
		if tc.want != "" {
			wantKind(t, err, TooLarge, tc.want)
		}
	}
	deep := top
	for range 5 {
		deep = filepath.Join(deep, strings.Repeat("d", 250))
	}
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := dir.Walk(t.Context(), "")
	wantKind(t, err, Invalid, "longer than 1024 characters")
}

// TestVersion: who makes a file of the same name, size and time has another one.
func TestVersion(t *testing.T) {
	top := files(t, map[string]int{"x": 3})
	dir := Dir{Root: openRoot(t, top)}
	before, err := dir.object("x")
	if err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(filepath.Join(top, "x"))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := dir.object("x"); err != nil || again != before {
		t.Errorf("the same file: %+v, %+v, %v", before, again, err)
	}
	if err := os.Rename(filepath.Join(top, "x"), filepath.Join(top, "y")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(top, "x"), []byte("abc"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(filepath.Join(top, "x"), st.ModTime(), st.ModTime()); err != nil {
		t.Fatal(err)
	}
	if other, err := dir.object("x"); err != nil || other.Size != before.Size || other.Version == before.Version {
		t.Errorf("another file: %+v, %+v, %v", before, other, err)
	}
}

// TestHoles: what was never written is not written, wherever it lies.
func TestHoles(t *testing.T) {
	const size = 64 << 20
	for name, parts := range map[string]map[int64]string{
		"all": {}, "begin": {0: "x"}, "end": {size - 1: "x"}, "between": {1 << 20: "x", 40 << 20: "yz"},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := t.TempDir(), t.TempDir()
			f, err := os.Create(filepath.Join(from, "f"))
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Truncate(size); err != nil {
				t.Fatal(err)
			}
			for at, text := range parts {
				if _, err := f.WriteAt([]byte(text), at); err != nil {
					t.Fatal(err)
				}
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			s := Send{Sink: DirSink(Dir{Root: openRoot(t, to)}, ""), From: Dir{Root: openRoot(t, from)}, Names: []string{"f"}, Journal: filepath.Join(t.TempDir(), "j")}
			if err := testClient().Send(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(sums(t, from), sums(t, to)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
			st, err := os.Stat(filepath.Join(to, "f"))
			if err != nil {
				t.Fatal(err)
			}
			if n := st.Sys().(*syscall.Stat_t).Blocks * 512; n > 1<<20 {
				t.Errorf("%d bytes were written", n)
			}
		})
	}
}

// TestRoom: a file that does not fit is not begun, and nothing is left of it.
func TestRoom(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED, mounts as root")
	}
	from, to := files(t, map[string]int{"large": 3 << 20, "small": 10}), t.TempDir()
	if err := unix.Mount("none", to, "tmpfs", 0, "size=2040k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(to, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	s := Send{Sink: DirSink(Dir{Root: openRoot(t, to)}, ""), From: Dir{Root: openRoot(t, from)}, Names: []string{"large", "small"}, Journal: filepath.Join(t.TempDir(), "j")}
	err := testClient().Send(t.Context(), s)
	wantKind(t, err, TooLarge, "needs 3 MiB, and the storage has 1 MiB free (not saved, of 2 files: large)")
	entries, err := os.ReadDir(to)
	if err != nil || len(entries) != 1 || entries[0].Name() != "small" {
		t.Errorf("it has %v, %v", entries, err)
	}
	asked := int64(0)
	s.Room = func(n int64) error { asked = n; return fail(TooLarge, "no %d", n) }
	wantKind(t, testClient().Send(t.Context(), s), TooLarge, fmt.Sprint("no ", 3<<20+10))
	if asked != 3<<20+10 {
		t.Errorf("asked for %d", asked)
	}
}
