package account

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/oci/userns"
)

const first = 0x20000000

// open has a machine with the accounts of people.
func open(t *testing.T, file string, people map[string]account) *Accounts {
	t.Helper()
	a, err := Open(file, first)
	if err != nil {
		t.Fatal(err)
	}
	a.lookup = func(name string) (account, error) {
		if name == "broken" {
			return account{}, errors.New("the directory service is away")
		}
		return people[name], nil
	}
	return a
}

func TestOwner(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ids.json")
	people := map[string]account{
		"alice": {uid: 1003, gid: 1003, groups: []uint32{44}},
		"staff": {uid: 1004, gid: 0},
		"far":   {uid: first + 7, gid: 100},
	}
	a := open(t, file, people)
	at := func(n uint32) uint32 { return first + n*userns.RangeSize }
	eve, err := a.Owner("eve", nil, 0)
	if err != nil || eve.UID != eve.First || eve.GID != eve.First || eve.First < first {
		t.Errorf("a user without an account is %+v, %v", eve, err)
	}
	root, err := a.Owner("root", new(uint32(0)), 0)
	if err != nil || root.UID != root.First || root.UID == eve.UID {
		t.Errorf("root is %+v, %v", root, err)
	}
	for name, want := range map[string]userns.Owner{
		"alice": {UID: 1003, GID: 1003, Groups: []uint32{2001, 44}, First: at(1003)},
		"staff": {UID: 1004, GID: at(1004), Groups: []uint32{2001}, First: at(1004)},
	} {
		got, err := a.Owner(name, nil, 2001)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s (-want +got):\n%s%v", name, diff, err)
		}
	}
	for name, tc := range map[string]struct {
		user string
		uid  *uint32
		want string
	}{
		"differ":    {"alice", new(uint32(1005)), "is number 1005 to the controller and 1003 on this node"},
		"in ranges": {"far", nil, "set idsFrom"},
		"directory": {"broken", nil, "the directory service is away"},
	} {
		if _, err := a.Owner(tc.user, tc.uid, 0); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q", name, err, tc.want)
		}
	}

	// What was given stays, and an account that has gone is nobody else.
	delete(people, "alice")
	a = open(t, file, people)
	if again, err := a.Owner("eve", nil, 0); err != nil || again.First != eve.First {
		t.Errorf("after a restart a user is %+v, %v", again, err)
	}
	if o, err := a.Owner("alice", nil, 0); err == nil || !strings.Contains(err.Error(), "where it was number 1003") {
		t.Errorf("without her account she is %+v, %v", o, err)
	}
}

// Two users never have a range in common.
func TestRangesAreDistinct(t *testing.T) {
	people := map[string]account{}
	a := open(t, filepath.Join(t.TempDir(), "ids.json"), people)
	ranges := uint32(end-first) / userns.RangeSize
	seen := map[uint32]string{}
	for i := range uint32(60) {
		name := fmt.Sprint("u", i)
		people[name] = account{uid: 1000 + i%20 + (i/20)*ranges, gid: 100}
		if people[name].uid >= first {
			continue
		}
		o, err := a.Owner(name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		if other := seen[o.First]; other != "" {
			t.Errorf("%s and %s share a range", name, other)
		}
		seen[o.First] = name
	}
}
