package trees

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
)

// named is another controller's store, which may not answer.
type named struct {
	*Store
	name string
	away bool
}

var errAway = errors.New("no route")

func (n *named) Name() string { return n.name }

func (n *named) Take(ctx context.Context, user string, c Copy) ([]string, error) {
	if n.away {
		return nil, errAway
	}
	return n.Store.Take(ctx, user, c)
}

func (n *named) TakeChunk(ctx context.Context, user, sum string, data []byte) error {
	if n.away {
		return errAway
	}
	return n.Store.TakeChunk(ctx, user, sum, data)
}

func (n *named) Tree(ctx context.Context, user, id string) (*Copy, error) {
	if n.away {
		return nil, errAway
	}
	return n.Store.Tree(ctx, user, id)
}

// two are the others of three controllers.
type two [2]*named

func (t two) Peers() ([]Peer, error) { return []Peer{t[0], t[1]}, nil }

func (t two) Do(ctx context.Context, what func(context.Context, Peer) error) error {
	first, second := what(ctx, t[0]), what(ctx, t[1])
	if first != nil && second != nil {
		return errors.Join(first, second)
	}
	return nil
}

// newTwo are the others of a world.
func (w *world) newTwo() two {
	var list two
	for i, name := range []string{"c2", "c3"} {
		s, err := Open(Config{Dir: w.TempDir(), Now: func() time.Time { return w.now }, Log: w.Store.Log}, Following(func() int64 { return 0 }))
		if err != nil {
			w.Fatal(err)
		}
		list[i] = &named{Store: s, name: name}
	}
	return list
}

// leads is what becomes of the store of a controller when it leads.
func (w *world) leads(s *Store, others Others) {
	r := *w.rules.Load()
	r.Others = others
	s.Rule(r)
}

func (n *named) all(t *testing.T) map[string]map[string]time.Time {
	t.Helper()
	all, err := n.Trees(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestMajority: a directory is accepted when a majority has it, and a later controller
// gives the bytes of one that it had not taken itself.
func TestMajority(t *testing.T) {
	w := newWorld(t)
	others := w.newTwo()
	w.leads(w.Store, others)
	big := strings.Repeat("0123456789abcdef", 100_000)
	others[1].away = true
	id, err := w.bring("ann/..%", "one", big)
	if err == nil {
		err = w.spread(t.Context(), "ann/..%", id)
	}
	if err != nil {
		t.Fatalf("with one of two: %v", err)
	}
	others[0].away = true
	var e *api.Error
	if _, err := w.Has(t.Context(), "ann/..%", id); !errors.As(err, &e) || e.Code != api.CodeUnavailable || !strings.Contains(e.Message, "majority") {
		t.Errorf("with none: %v", err)
	}

	others[0].away, others[1].away = false, false
	first := &named{Store: w.Store, name: "c1"}
	w.leads(others[1].Store, two{first, others[0]})
	first.away, others[0].away = true, true
	if _, err := others[1].Has(t.Context(), "ann/..%", id); !errors.As(err, &e) || e.Code != api.CodeUnavailable || !strings.Contains(e.Message, "c1, c2") {
		t.Errorf("the one without it leads, and none answers: %v", err)
	}
	others[0].away = false
	if has, err := others[1].Has(t.Context(), "ann/..%", id); !has || err != nil {
		t.Fatalf("the one without it leads: %t, %v", has, err)
	}
	got, want := archive(t, others[1].Store, "ann/..%", id), archive(t, w.Store, "ann/..%", id)
	if !bytes.Equal(got, want) {
		t.Errorf("it reads %d bytes, of %d", len(got), len(want))
	}
	first.away = false
	if has, err := others[1].Has(t.Context(), "bob", id); has || err != nil {
		t.Errorf("another user's: %t, %v", has, err)
	}
}

func archive(t *testing.T, s *Store, user, id string) []byte {
	t.Helper()
	r, err := s.open(user, id)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestCompared: who leads gets what jobs need or may again, and has removed what nobody
// needs; one that lacks something is given it.
func TestCompared(t *testing.T) {
	w := newWorld(t)
	others := w.newTwo()
	give := func(to *named, text string, wanted time.Time) string {
		t.Helper()
		id, err := w.bring("ann", text)
		if err != nil {
			t.Fatal(err)
		}
		w.users["ann"].trees[id].wanted = wanted
		err = w.give(t.Context(), to, "ann", id)
		if err == nil {
			err = w.Drop(t.Context(), "ann", id)
		}
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	old := w.now.Add(-30 * 24 * time.Hour)
	needed, idle, recent := give(others[0], "needed", old), give(others[0], "idle", old), give(others[1], "recent", w.now)
	w.needed[needed] = true
	own, err := w.bring("bob", "own")
	if err != nil {
		t.Fatal(err)
	}
	w.leads(w.Store, others)
	for range 2 { // nothing is left to do the second time
		if err := w.compare(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.compare(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string]time.Time{"ann": {needed: old, recent: w.now}, "bob": {own: w.now}}
	for _, n := range []*named{{Store: w.Store, name: "c1"}, others[0], others[1]} {
		if diff := cmp.Diff(want, n.all(t)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", n.name, diff)
		}
	}
	if c, err := others[0].Tree(t.Context(), "ann", idle); c != nil || err != nil {
		t.Errorf("what nobody needs: %v, %v", c, err)
	}

	w.most.Bytes = 1 // ann has no room for more, so only what a job needs comes
	w.now = w.now.Add(2 * patience)
	if err := w.Drop(t.Context(), "ann", recent); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.compare(t.Context()), w.compare(t.Context())); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]time.Time{needed: old}, others[1].all(t)["ann"]); diff != "" {
		t.Errorf("without room (-want +got):\n%s", diff)
	}
}

// TestRoomIsKept: what was removed to make room does not come back from another controller, and
// goes there too.
func TestRoomIsKept(t *testing.T) {
	w := newWorld(t)
	others := w.newTwo()
	w.leads(w.Store, others)
	old, err := w.bring("ann", "old")
	if err == nil {
		err = w.spread(t.Context(), "ann", old)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.most.Bytes = w.users["ann"].bytes + leastCharge // for one more chunk, but no more list
	w.now = w.now.Add(2 * patience)
	latest, err := w.bring("ann", "new")
	if err == nil {
		err = w.spread(t.Context(), "ann", latest)
	}
	if err == nil {
		err = errors.Join(w.compare(t.Context()), w.compare(t.Context()))
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []*named{{Store: w.Store, name: "c1"}, others[0], others[1]} {
		if diff := cmp.Diff(map[string]time.Time{latest: w.now}, n.all(t)["ann"]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", n.name, diff)
		}
	}
}

// TestRepairedByOthers: what a disk has changed is never given, and comes back from another
// controller.
func TestRepairedByOthers(t *testing.T) {
	w := newWorld(t)
	others := w.newTwo()
	w.leads(w.Store, others)
	id, err := w.bring("ann", strings.Repeat("text", 10_000))
	if err == nil {
		err = w.spread(t.Context(), "ann", id)
	}
	if err != nil {
		t.Fatal(err)
	}
	want := archive(t, w.Store, "ann", id)
	damage := func(s *Store) {
		t.Helper()
		k := s.users["ann"].trees[id]
		path := s.users["ann"].chunkPath(k.Chunks[0].Sum)
		data, err := os.ReadFile(path)
		if err == nil {
			data[len(data)/2] ^= 1
			err = os.WriteFile(path, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	damage(w.Store)
	damage(others[0].Store)
	r, err := w.Store.open("ann", id)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(r); err == nil || len(data) > 0 {
		t.Errorf("damaged bytes were given: %d, %v", len(data), err)
	}
	if got, err := w.fetch(t.Context(), "ann", id); !got || err != nil {
		t.Fatalf("got again: %t, %v", got, err)
	}
	if got := archive(t, w.Store, "ann", id); !bytes.Equal(got, want) {
		t.Errorf("it reads %d bytes, of %d", len(got), len(want))
	}
	if err := w.compare(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := archive(t, others[0].Store, "ann", id); !bytes.Equal(got, want) {
		t.Errorf("the other reads %d bytes, of %d", len(got), len(want))
	}
}
