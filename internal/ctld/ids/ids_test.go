package ids

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

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

// TestGivenTogether: who asks while a range is made durable waits for it and has
// the same; another user has another one, at once; and what could not be stored
// is free again. A user's name that waits for a disk holds up nobody else's.
func TestGivenTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failing error
		b := newBook(func() uint32 { return from }, func(state.Record) error { time.Sleep(time.Second); return failing })
		type answer struct {
			user  string
			first uint32
			err   error
		}
		ask := func(users ...string) map[string]uint32 {
			answers, begun := make(chan answer), time.Now()
			for _, user := range users {
				go func() { first, err := b.Of(user, nil); answers <- answer{user, first, err} }()
			}
			got := map[string]uint32{}
			for range users {
				a := <-answers
				if !errors.Is(a.err, failing) {
					t.Errorf("%s: %v, want %v", a.user, a.err, failing)
				}
				if first, ok := got[a.user]; ok && first != a.first {
					t.Errorf("%s has %d and %d", a.user, first, a.first)
				}
				got[a.user] = a.first
			}
			if failing == nil && time.Since(begun) > time.Second {
				t.Errorf("%v waited for each other, %v in all", users, time.Since(begun))
			}
			return got
		}
		got := ask("ann", "ann", "bob", "ann", "bob")
		if got["ann"] == got["bob"] || got["ann"] == 0 {
			t.Errorf("two users share a range, or have none: %v", got)
		}
		failing = errors.New("the disk is full")
		if got := ask("eve", "eve"); got["eve"] != 0 || len(b.taken) != 2 || len(b.giving) != 0 {
			t.Errorf("without a disk: %v, taken %v, being given %v", got, b.taken, b.giving)
		}
		failing = nil
		if got := ask("eve", "eve"); got["eve"] == 0 {
			t.Error("with a disk again eve has none")
		}
	})
}
