package ids

import (
	"errors"
	"fmt"
	"testing"

	"gbatch/internal/node"
	"gbatch/internal/state"
)

const from = 0x20000000

// TestRanges: each user has one range, which is on disk before it is told, is kept
// when the configuration moves, and is nobody else's.
func TestRanges(t *testing.T) {
	var stored []string
	begin, failing := uint32(from), error(nil)
	b := newBook(func() uint32 { return begin }, func(r state.Record) error {
		if failing == nil {
			stored = append(stored, fmt.Sprintf("%c %s %s", r.Kind, r.Name, r.Value))
		}
		return failing
	})
	get := func(user string, uid *uint32) uint32 {
		t.Helper()
		first, err := b.Of(user, uid)
		if err != nil || first < begin || first >= node.IDsEnd || first%node.IDRange != 0 {
			t.Errorf("%s has %d, %v", user, first, err)
		}
		return first
	}
	ann := get("ann", new(uint32(1003)))
	if want := uint32(from + 1003*node.IDRange); ann != want || len(stored) != 1 || stored[0] != fmt.Sprintf(`o ann {"first":%d}`, want) {
		t.Errorf("ann has %d and stored is %q", ann, stored)
	}
	if same := get("bob", new(uint32(1003))); same == ann {
		t.Error("two users share a range")
	}
	failing = errors.New("the disk is full")
	if first, err := b.Of("eve", nil); err == nil {
		t.Errorf("without a disk eve has %d", first)
	}
	failing = nil
	eve := get("eve", nil)
	if root := get("root", new(uint32(0))); root == eve || root == from {
		t.Errorf("root has %d", root)
	}
	begin = 0x70000000
	if again, err := b.Of("ann", nil); err != nil || again != ann {
		t.Errorf("ann has %d when ranges begin elsewhere, %v", again, err)
	}
	ranges := int(node.IDsEnd-begin) / node.IDRange
	seen := map[uint32]string{}
	for {
		user := fmt.Sprint("u", len(seen))
		first, err := b.Of(user, new(uint32(len(seen)%7)))
		if err != nil || seen[first] != "" {
			t.Fatalf("%s shares %d with %q, %v", user, first, seen[first], err)
		}
		if first == 0 {
			break
		}
		seen[first] = user
	}
	if len(seen) > ranges || len(seen) < ranges-3 { // some of the first users' may lie there
		t.Errorf("%d users have one of %d ranges", len(seen), ranges)
	}
}
