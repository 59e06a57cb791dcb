package nodes

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestSharers: the first node of an image has it from the registry, each later one is told of
// some before it, and none of too many.
func TestSharers(t *testing.T) {
	var s sharers
	now := time.Unix(0, 0)
	asks := map[string]int{} // by node, of those that ask it first
	for i := range 64 {
		before, isNew := s.join("box:1", fmt.Sprint(i), now)
		if !isNew || (len(before) == 0) != (i == 0) {
			t.Errorf("node %d: new %t, before it %v", i, isNew, before)
		}
		for _, b := range before {
			var n int
			if fmt.Sscan(b, &n); n >= i {
				t.Errorf("node %d is sent to %s, which may wait for it", i, b)
			}
		}
		if i > 0 {
			asks[before[0]]++
		}
	}
	for node, n := range asks {
		if n > 4 {
			t.Errorf("%d nodes ask node %s first", n, node)
		}
	}
	again, isNew := s.join("box:1", "5", now)
	if diff := cmp.Diff([]string{"1", "2", "4", "0"}, again); diff != "" || isNew {
		t.Errorf("of one that is there already: new %t, %s", isNew, diff)
	}
	if before, isNew := s.join("box:2", "5", now); len(before) != 0 || !isNew {
		t.Errorf("of another image: new %t, %v", isNew, before)
	}
}

// TestSharersForget: nodes that keep the layers no more are asked no more, and what is known is bounded.
func TestSharersForget(t *testing.T) {
	var s sharers
	now := time.Unix(0, 0)
	s.join("box", "a", now)
	s.join("box", "b", now.Add(shareFor/2))
	before, isNew := s.join("box", "a", now.Add(shareFor))
	if diff := cmp.Diff([]string{"b"}, before); diff != "" || !isNew {
		t.Errorf("new %t, %s", isNew, diff)
	}
	for i := range maxSharing + 10 {
		s.join("large", fmt.Sprint(i), now)
	}
	if of := s.images["large"]; len(of.nodes) != maxSharing || len(of.at) != maxSharing {
		t.Errorf("%d nodes are known", len(of.nodes))
	}
	for i := range maxImages {
		s.join(fmt.Sprint("image", i), "a", now.Add(shareFor))
	}
	if len(s.images) > maxImages || s.images["large"] != nil {
		t.Errorf("%d images are known", len(s.images))
	}
}
