package account

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/node"
	"gbatch/oci/userns"
)

const from = 0x20000000

// at is where a range begins.
func at(n uint32) uint32 { return from + n*node.IDRange }

// open has a machine with the accounts of people, and containers of busy, which
// have the range that begins with the number.
func open(t *testing.T, file string, people map[string]account, busy map[string]uint32) *Accounts {
	t.Helper()
	a, err := Open(file, from, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	a.lookup = func(name string) (account, error) {
		if name == "broken" {
			return account{}, errors.New("the directory service is away")
		}
		return people[name], nil
	}
	a.Busy = func(name string, first uint32) bool { return busy[name] == first }
	return a
}

func TestRangesAreOfOneSize(t *testing.T) {
	if node.IDRange != userns.RangeSize {
		t.Errorf("the controller gives %d ids and a container has %d", node.IDRange, userns.RangeSize)
	}
}

func TestOwner(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ids.json")
	people := map[string]account{
		"alice": {uid: 1003, gid: 1003, groups: []uint32{44}},
		"staff": {uid: 1004, gid: 0},
		"far":   {uid: from + 7, gid: 100},
		"group": {uid: 1005, gid: 100, groups: []uint32{from + 7}},
	}
	a := open(t, file, people, nil)
	for name, want := range map[string]userns.Owner{
		"alice": {UID: 1003, GID: 1003, Groups: []uint32{2001, 44}, First: at(0)},
		"staff": {UID: 1004, GID: at(4), Groups: []uint32{2001}, First: at(4)},
		"eve":   {UID: at(7), GID: at(7), Groups: []uint32{2001}, First: at(7)},
	} {
		got, err := a.Owner(name, nil, 2001, want.First)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s (-want +got):\n%s%v", name, diff, err)
		}
	}
	root, err := a.Owner("root", new(uint32(0)), 0, at(9))
	if err != nil || root.UID != root.First || root.GID != root.First {
		t.Errorf("root is %+v, %v", root, err)
	}
	for name, tc := range map[string]struct {
		user    string
		uid     *uint32
		project int
		first   uint32
		want    string
	}{
		"differ":          {"alice", new(uint32(1005)), 0, at(0), "is number 1005 to the controller and 1003 on this node"},
		"in ranges":       {"far", nil, 0, at(20), "set idsFrom beyond all accounts"},
		"group in ranges": {"group", nil, 0, at(20), "set idsFrom beyond all groups"},
		"project's":       {"alice", nil, from + 7, at(0), "set idsFrom beyond all groups"},
		"no gid":          {"alice", nil, 1 << 32, at(0), "4294967296 is no group"},
		"negative":        {"alice", nil, -1, at(0), "-1 is no group"},
		"directory":       {"broken", nil, 0, at(20), "the directory service is away"},
		"below":           {"new", nil, 0, from - node.IDRange, "are none that this node lets containers have"},
		"askew":           {"new", nil, 0, from + 1, "are none that this node lets containers have"},
		"beyond":          {"new", nil, 0, node.IDsEnd, "are none that this node lets containers have"},
		"none":            {"new", nil, 0, 0, "the controller gives user new no ids"},
	} {
		if o, err := a.Owner(tc.user, tc.uid, tc.project, tc.first); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %+v, error %v, want %q", name, o, err, tc.want)
		}
	}

	// An account that has gone is nobody else.
	delete(people, "alice")
	a = open(t, file, people, nil)
	if o, err := a.Owner("alice", nil, 0, at(0)); err == nil || !strings.Contains(err.Error(), "where it was number 1003") {
		t.Errorf("without her account she is %+v, %v", o, err)
	}
}

// TestRangesFromBefore: containers that began with ranges that this node gave keep
// them, new ones have the controller's, and no two users have one at a time.
func TestRangesFromBefore(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ids.json")
	if err := os.WriteFile(file, []byte(`{"alice":{"range":0,"uid":0},"bob":{"range":5,"uid":0},"carl":{"range":6,"uid":0}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	busy := map[string]uint32{"bob": at(5)}
	a := open(t, file, nil, busy)
	is := func(name string, ordered, want uint32) {
		t.Helper()
		if o, err := a.Owner(name, nil, 0, ordered); err != nil || o.First != want {
			t.Errorf("%s has %d, %v; want %d", name, o.First, err, want)
		}
	}
	refused := func(name string, ordered uint32) {
		t.Helper()
		if o, err := a.Owner(name, nil, 0, ordered); err == nil || !strings.Contains(err.Error(), "another user's containers") {
			t.Errorf("%s has %+v, %v", name, o, err)
		}
	}
	is("alice", 0, at(0)) // a container of before
	is("alice", at(1), at(1))
	is("alice", 0, at(0))
	refused("eve", at(5)) // bob's containers have it
	is("bob", at(2), at(2))
	refused("eve", at(5))
	is("bob", 0, at(5))
	a = open(t, file, nil, busy)
	is("alice", 0, at(0))
	refused("eve", at(5))
	delete(busy, "bob")
	is("eve", at(5), at(5))
	if o, err := a.Owner("bob", nil, 0, 0); err == nil {
		t.Errorf("bob has %+v, which is eve's now", o)
	}
	is("carl", at(6), at(6)) // the same as before
	busy["carl"] = at(6)
	refused("eve", at(6)) // a controller that gives one to two users
	is("eve", at(5), at(5))
}
