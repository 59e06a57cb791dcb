package noded

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/noded/config"
)

// TestKeptLogsAreShared: of too many kept logs those go of whoever has most, the
// oldest first; and those that are too old, whoever has them.
func TestKeptLogsAreShared(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	type has struct {
		user  string
		n     int
		bytes int64
	}
	for name, tc := range map[string]struct {
		has  []has // the oldest first
		want map[string]int
	}{
		"few":          {[]has{{"ann", 3, 10}, {"eve", 4, 20}}, map[string]int{"ann": 3, "eve": 4}},
		"one is large": {[]has{{"ann", 3, 10}, {"eve", 40, 20}}, map[string]int{"ann": 3, "eve": 9}},
		"two are":      {[]has{{"bob", 30, 10}, {"ann", 3, 10}, {"eve", 40, 20}}, map[string]int{"bob": 9, "ann": 3, "eve": 4}},
		"many small":   {[]has{{"ann", 5, 0}, {"eve", maxKept, 0}}, map[string]int{"ann": 5, "eve": maxKept - 5}},
		"one for each": {[]has{{"ann", 1, 150}, {"eve", 1, 60}}, map[string]int{"ann": 1, "eve": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			k := &keptLogs{limits: config.Logs{Keep: config.Duration(time.Hour), KeepSize: 210}}
			k.list = append(k.list, keptLog{user: "zoe", released: now.Add(-2 * time.Hour), bytes: 1})
			k.bytes = 1
			for _, h := range tc.has {
				for range h.n {
					k.list = append(k.list, keptLog{user: h.user, dir: fmt.Sprint(len(k.list)), released: now, bytes: h.bytes})
					k.bytes += h.bytes
				}
			}
			k.surplus(now)
			got, newest := map[string]int{}, map[string]string{}
			for _, l := range k.list {
				got[l.user]++
				newest[l.user] = l.dir
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
			last := 1
			for _, h := range tc.has {
				if last += h.n; newest[h.user] != fmt.Sprint(last-1) {
					t.Errorf("of %s the newest kept is %s, want %d", h.user, newest[h.user], last-1)
				}
			}
		})
	}
}
