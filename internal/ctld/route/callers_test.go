package route

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/ctld/access"
)

// TestOpenRequests: a user has so many requests open, and so many streams beside;
// others are not held up, what ends makes room, and nothing is left.
func TestOpenRequests(t *testing.T) {
	var c callers
	caps := Caps{Requests: 3, Streams: 2}
	ann, node := access.Identity{User: "ann", Role: access.RoleUser}, access.Identity{User: "node n1", Role: access.RoleNode}
	var leaves []func()
	enter := func(id access.Identity, kind answerKind) *api.Error {
		leave, _, e := c.enter(id, http.MethodGet, kind, caps)
		if e == nil {
			leaves = append(leaves, leave)
		}
		return e
	}
	for i := range 5 {
		for kind, most := range map[answerKind]int{shortAnswer: 3, endlessAnswer: 2} {
			if e := enter(ann, kind); (e == nil) != (i < most) || e != nil && e.Status != 429 {
				t.Errorf("number %d of kind %d: %v", i+1, kind, e)
			}
		}
		if e := enter(node, shortAnswer); e != nil {
			t.Errorf("number %d of a node: %v", i+1, e)
		}
	}
	e := enter(ann, largeAnswer)
	if want := "ann has 3 of at most 3 requests open (limits.perUser.requests)"; e == nil || e.Message != want || e.Code != api.CodeTooMany {
		t.Errorf("told %v, want %q", e, want)
	}
	if e := enter(access.Identity{User: "bob", Role: access.RoleUser}, shortAnswer); e != nil {
		t.Errorf("another user: %v", e)
	}
	for _, l := range leaves {
		l()
	}
	if len(c.open) != 0 {
		t.Errorf("%d users are left", len(c.open))
	}
	if e := enter(ann, endlessAnswer); e != nil {
		t.Errorf("when all have ended: %v", e)
	}
}

// TestAskedTooOften: ten seconds' worth at once, then as many as the rate; a list
// counts for ten, and changes apart from reads.
func TestAskedTooOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c callers
		caps := Caps{Changes: 100, Reads: 100}
		ask := func(method string, kind answerKind, tries int) (in int, last *api.Error) {
			for range tries {
				leave, wait, e := c.enter(access.Identity{User: "ann", Role: access.RoleUser}, method, kind, caps)
				if last = e; e == nil {
					in++
					leave()
				} else if wait <= 0 || wait > time.Second {
					t.Fatalf("wait %v", wait)
				}
			}
			return in, last
		}
		if in, e := ask(http.MethodPost, shortAnswer, 2000); in != 1000 || !strings.Contains(e.Message, "limits.perUser.changesPerSecond") {
			t.Errorf("%d changes at once, %v", in, e)
		}
		if in, e := ask(http.MethodGet, largeAnswer, 2000); in != 100 || !strings.Contains(e.Message, "limits.perUser.readsPerSecond") {
			t.Errorf("%d lists at once, %v", in, e)
		}
		time.Sleep(time.Second)
		if in, _ := ask(http.MethodGet, shortAnswer, 2000); in != 100 {
			t.Errorf("%d reads in the next second", in)
		}
		caps = Caps{}
		if in, _ := ask(http.MethodPost, shortAnswer, 5000); in != 5000 {
			t.Errorf("%d without a bound", in)
		}
	})
}
