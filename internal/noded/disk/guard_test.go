package disk

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"gbatch/internal/job"
)

// TestToEnd: who is ended for what it wrote.
func TestToEnd(t *testing.T) {
	const gib = 1 << 30
	rank := func(n int, user string, used int64, change ...func(*use)) use {
		u := use{id: job.RankID{Job: job.Number(n), Attempt: 1}, user: user, used: used * gib, limit: 10 * gib}
		for _, f := range change {
			f(&u)
		}
		return u
	}
	held := func(u *use) { u.held = true }
	ended := func(u *use) { u.ended = true }
	bytes := func(n int64) func(*use) { return func(u *use) { u.used = n } }
	reserved := func(n int64) func(*use) { return func(u *use) { u.reserved, u.limit = n*gib, n*gib } }
	tests := map[string]struct {
		free int64
		uses []use
		want []int
	}{
		"all well":                        {50, []use{rank(1, "a", 9), rank(2, "b", 10)}, nil},
		"over its limit":                  {50, []use{rank(1, "a", 11), rank(2, "b", 10)}, []int{1}},
		"held by a quota":                 {50, []use{rank(1, "a", 11, held)}, nil},
		"over and told":                   {50, []use{rank(1, "a", 11, ended)}, nil},
		"disk full, the largest":          {0, []use{rank(1, "a", 3), rank(2, "b", 5), rank(3, "c", 4)}, []int{2}},
		"also where a quota holds it":     {0, []use{rank(1, "a", 3, held), rank(2, "b", 5, held)}, []int{2}},
		"of the user with most":           {0, []use{rank(1, "a", 3), rank(2, "b", 5), rank(3, "a", 4)}, []int{3}},
		"one at a time":                   {0, []use{rank(1, "a", 3), rank(2, "b", 5, ended), rank(3, "a", 4)}, nil},
		"who is over first":               {0, []use{rank(1, "a", 12), rank(2, "b", 9), rank(3, "b", 9)}, []int{1}},
		"what is reserved is nobody's":    {0, []use{rank(1, "a", 9, reserved(10)), rank(2, "b", 2)}, []int{2}},
		"and not to be used up by others": {4, []use{rank(1, "a", 2, reserved(6)), rank(2, "b", 2)}, []int{2}},
		"there is enough for them":        {6, []use{rank(1, "a", 2, reserved(6)), rank(2, "b", 2)}, nil},
		"somebody else has filled it":     {0, []use{rank(1, "a", 0, bytes(40<<10)), rank(2, "b", 0, bytes(7<<10))}, nil},
		"mostly somebody else":            {0, []use{rank(1, "a", 0, bytes(gib/2))}, nil},
		"and their end gives enough back": {0, []use{rank(1, "a", 0, bytes(gib/2)), rank(2, "b", 0, bytes(gib*3/4))}, []int{2}},
		"nobody to end":                   {0, []use{rank(1, "a", 9, reserved(10))}, nil},
		"nobody at all":                   {0, nil, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []int
			for _, id := range slices.SortedFunc(maps.Keys(toEnd(test.uses, test.free*gib, gib)), func(a, b job.RankID) int { return int(a.Job) - int(b.Job) }) {
				got = append(got, int(id.Job))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("ended (-want +got):\n%s", diff)
			}
		})
	}
}

// TestMeasure: what a container made of its directory is measured without
// leaving it, and whoever hides something is taken to have too much.
func TestMeasure(t *testing.T) {
	top := t.TempDir()
	write := func(name string, size int) {
		t.Helper()
		path := filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a/x", 1<<20)
	write("a/b/y", 1<<20)
	write("empty", 0)
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "big"), make([]byte, 8<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(top, "a", "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(outside, "top")); err != nil {
		t.Fatal(err)
	}
	got := measure([]string{top, filepath.Join(outside, "top"), filepath.Join(top, "gone")}, 1<<40)
	if got.files != 6 || got.bytes < 2<<20 || got.bytes > 3<<20 {
		t.Errorf("measured %+v, want 6 files and 2 MiB with their blocks", got)
	}
	if got := measure([]string{top}, 1<<19); got.bytes <= 1<<19 {
		t.Errorf("measured %+v, want more than the most", got)
	}
	deep := t.TempDir()
	dir, err := unix.Open(deep, unix.O_PATH, 0)
	for range maxNesting + 10 {
		if err == nil {
			err = unix.Mkdirat(dir, "d", 0o700)
		}
		next, oerr := unix.Openat(dir, "d", unix.O_PATH, 0)
		unix.Close(dir)
		dir = next
		if err = oerr; err != nil {
			t.Fatal(err)
		}
	}
	unix.Close(dir)
	if got := measure([]string{deep}, 1<<40); got.bytes <= 1<<40 {
		t.Errorf("measured %+v of a tree too deep to look at", got)
	}
}
