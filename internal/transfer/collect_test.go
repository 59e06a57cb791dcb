package transfer

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestCacheIsShared: of too much in the cache those entries go that whoever has
// most used longest ago, also where they never came whole; what is held stays; and
// who asks for more room than there can be takes none from others.
func TestCacheIsShared(t *testing.T) {
	now := time.Now()
	for name, tc := range map[string]struct {
		max, room int64 // KiB; of room, 0: Collect
		want      []string
	}{
		"all of it fits":        {4000, 0, []string{"bob-1", "eve-0", "eve-1", "eve-2", "eve-part"}},
		"who has most":          {2500, 0, []string{"bob-1", "eve-1", "eve-2", "eve-part"}},
		"down to the others":    {1500, 0, []string{"bob-1", "eve-part"}},
		"what is held stays":    {0, 0, []string{"bob-1"}},
		"room":                  {4000, 600, []string{"bob-1", "eve-1", "eve-2", "eve-part"}},
		"more room than can be": {4000, 5000, []string{"bob-1", "eve-0", "eve-1", "eve-2", "eve-part"}},
	} {
		t.Run(name, func(t *testing.T) {
			k, err := OpenCache(t.TempDir(), tc.max<<10, nil)
			if err != nil {
				t.Fatal(err)
			}
			age := time.Duration(20)
			entry := func(key, user string, kib int) {
				t.Helper()
				dir := filepath.Join(k.dir, key)
				age--
				at := now.Add(-age * time.Minute)
				if err := k.own(dir, user); err != nil {
					t.Fatal(err)
				}
				name, content := marker, fmt.Appendln(nil, kib<<10)
				if key == "eve-part" {
					name, content = "some", make([]byte, kib<<10)
				}
				file := filepath.Join(dir, name)
				if err := os.WriteFile(file, content, 0o600); err != nil {
					t.Fatal(err)
				}
				for _, path := range []string{file, dir} {
					if err := os.Chtimes(path, at, at); err != nil {
						t.Fatal(err)
					}
				}
			}
			entry("bob-1", "bob", 500)
			for i := range 3 {
				entry(fmt.Sprint("eve-", i), "eve", 600)
			}
			entry("eve-part", "eve", 700)
			k.Hold("bob-1", "r1")
			if tc.room > 0 {
				_, err = k.MakeRoom(now, tc.room<<10)
			} else {
				_, err = k.Collect(now)
			}
			if err != nil {
				t.Fatal(err)
			}
			there := map[string]bool{}
			entries, err := os.ReadDir(k.dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				there[e.Name()] = true
			}
			if diff := cmp.Diff(tc.want, slices.Sorted(maps.Keys(there))); diff != "" {
				t.Errorf("left (-want +got):\n%s", diff)
			}
		})
	}
}
