package samples

import (
	"log/slog"
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

// TestHeardClocks: a word that was long under way is no clock that is behind; one that goes on to say so is, and one that is ahead,
// or behind by more than any word is under way, is so at once.
func TestHeardClocks(t *testing.T) {
	began := time.UnixMilli(1_000_000_000_000)
	type word struct{ at, ahead, want time.Duration }
	for name, words := range map[string][]word{
		"right":                  {{0, 0, 0}, {1, -4, -4}},
		"to one that was not up": {{0, -30, 0}, {0, -9, 0}, {1, -8, 0}, {1, 0, 0}, {20, -9, 0}, {21, -1, -1}},
		"behind":                 {{0, -9, 0}, {1, -9, 0}, {2, -9, -9}, {20, -10, -10}, {21, 0, 0}},
		"ahead":                  {{0, 9, 9}, {1, 9, 9}, {2, -9, 0}},
		"hours behind":           {{0, -3600, -3600}, {1, -3600, -3600}, {2, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			s := NewSkews(slog.New(slog.DiscardHandler))
			for i, w := range words {
				now := began.Add(w.at * time.Second)
				if got := s.Heard("n1", now.Add(w.ahead*time.Second).UnixMilli(), now); got != w.want*time.Second {
					t.Errorf("word %d: ahead by %v, want %v", i, got, w.want*time.Second)
				}
			}
		})
	}
}
