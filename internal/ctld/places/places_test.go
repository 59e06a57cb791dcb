package places

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// TestPlaces: one user has so much at once; others are not held up, who waits and
// goes leaves nothing, and what is larger than all there is goes alone.
func TestPlaces(t *testing.T) {
	g := Places{Most: 8}
	var leave []func()
	for range 4 {
		l, ok := g.Enter(t.Context(), "ann", 2)
		if !ok {
			t.Fatal("no place")
		}
		leave = append(leave, l)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, ok := g.Enter(ctx, "ann", 1); ok {
		t.Error("one too many was let in")
	}
	other, ok := g.Enter(t.Context(), "bob", 1000)
	if !ok {
		t.Fatal("another user was held up")
	}
	if _, ok := g.Enter(ctx, "bob", 1); ok {
		t.Error("beside all there is one more was let in")
	}
	other()
	leave[0]()
	if leave[0], ok = g.Enter(t.Context(), "ann", 2); !ok {
		t.Error("the place that was left was not given")
	}
	for _, l := range leave {
		l()
	}
	if len(g.byUser) != 0 {
		t.Errorf("%d users are left", len(g.byUser))
	}
}

// TestGateTurns: with ten times as many waiting as others have, a user gets every
// third turn of three users, and the others' last is in after as many turns as
// there are users for each of theirs.
func TestGateTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(1, 1000)
		leave, ok := g.Enter(t.Context(), "busy")
		if !ok {
			t.Fatal("an open gate")
		}
		entered := make(chan string, 100)
		wait := func(user string, n int) {
			for range n {
				go func() { // ends when it had its turn, below
					l, ok := g.Enter(t.Context(), user)
					if ok {
						entered <- user
						l()
					}
				}()
			}
			synctest.Wait()
		}
		gone, cancel := context.WithCancel(t.Context())
		go func() { // ends with gone
			if _, ok := g.Enter(gone, "ann"); ok {
				t.Error("who had gone was let in")
			}
		}()
		wait("ann", 50)
		wait("bob", 5)
		wait("eve", 5)
		cancel()
		synctest.Wait()
		leave()
		leave() // twice is once
		synctest.Wait()
		close(entered)
		got, turn := map[string]int{}, 0
		for user := range entered {
			turn++
			if got[user] = turn; got["bob"] > 16 || got["eve"] > 16 {
				t.Fatalf("turn %d is %s's", turn, user)
			}
		}
		if turn != 60 {
			t.Errorf("%d had a turn, want 60", turn)
		}
		if diff := cmp.Diff(1, g.free); diff != "" {
			t.Errorf("places at the end (-want +got):\n%s", diff)
		}
	})
}

// TestGateFull: when too many wait, the last of who has most is put out.
func TestGateFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(1, 3)
		leave, _ := g.Enter(t.Context(), "busy")
		outcome := map[string]chan bool{"ann": make(chan bool, 4), "bob": make(chan bool, 1)}
		for _, user := range []string{"ann", "ann", "ann", "bob"} {
			go func() { // ends with leave, below
				l, ok := g.Enter(t.Context(), user)
				outcome[user] <- ok
				if ok {
					l()
				}
			}()
			synctest.Wait()
		}
		if len(outcome["ann"]) != 1 || <-outcome["ann"] {
			t.Error("none of hers was put out")
		}
		leave()
		if !<-outcome["bob"] || !<-outcome["ann"] || !<-outcome["ann"] {
			t.Error("not all others had a turn")
		}
	})
}
