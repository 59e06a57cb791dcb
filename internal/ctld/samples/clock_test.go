package samples

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/node"
)

// TestOnOurClock: what a node whose clock was set says of when things were is moved to the controller's
// clock, either way; what is not said stays so, and what the node said is not changed in place.
func TestOnOurClock(t *testing.T) {
	const began, ended = 1_000_000_000_000, 1_000_000_060_000
	for name, skew := range map[string]time.Duration{"right": 0, "a message's way": maxSkew, "ahead": 3 * time.Hour, "behind": -3 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			off := skew.Milliseconds()
			said := []node.RankStatus{
				{StartedMS: began + off, Exit: &node.Exit{StartedMS: began + off, EndedMS: ended + off, FreeMS: ended + off}},
				{Exit: &node.Exit{EndedMS: ended + off}},
				{},
			}
			by := off
			if skew.Abs() <= maxSkew {
				by = 0
			}
			want := []node.RankStatus{
				{StartedMS: began + off - by, Exit: &node.Exit{StartedMS: began + off - by, EndedMS: ended + off - by, FreeMS: ended + off - by}},
				{Exit: &node.Exit{EndedMS: ended + off - by}},
				{},
			}
			if diff := cmp.Diff(want, OnOurClock(said, skew)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if said[0].StartedMS != began+off || said[0].Exit.EndedMS != ended+off {
				t.Error("what the node said was changed")
			}
		})
	}
}
