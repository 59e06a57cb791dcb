package turn

import (
	"context"
	"errors"
	"testing"
)

// TestTurn: ranks that are ordered ahead begin one after the other, also where one of them is ended
// before its turn: who follows it waits for the one that it waited for.
func TestTurn(t *testing.T) {
	list := make([]*Turn, 4)
	for i := range list {
		if list[i] = New(); i > 0 {
			list[i].Follow(list[i-1])
		}
	}
	ended := errors.New("ended")
	stopped, stop := context.WithCancelCause(t.Context())
	stop(ended)
	waits := func(i int) bool { return errors.Is(list[i].Await(stopped), ended) }
	may := func(i int) bool { return list[i].Await(t.Context()) == nil }
	if !may(0) || !waits(1) || !waits(2) || !waits(3) {
		t.Fatal("only the first has its turn")
	}
	list[2].Pass()
	list[1].Pass() // ended before its turn, too
	if !waits(3) {
		t.Fatal("it has its turn while the first runs")
	}
	list[0].Pass()
	list[0].Pass()
	if !may(3) || !may(1) {
		t.Fatal("nobody has the turn of the first")
	}
	if list[3].before.Load() != nil {
		t.Error("it holds those before it for ever")
	}
	if !list[0].Followed() || list[3].Followed() {
		t.Error("the last one alone is followed by none")
	}
}

// TestPlace: who follows another one learns when that has its place, at the latest when it is over.
func TestPlace(t *testing.T) {
	first, second, third := New(), New(), New()
	second.Follow(first)
	third.Follow(second)
	ended := errors.New("ended")
	stopped, stop := context.WithCancelCause(t.Context())
	stop(ended)
	if err := second.AwaitPlace(stopped); !errors.Is(err, ended) {
		t.Errorf("it does not wait: %v", err)
	}
	first.Placed()
	second.Pass() // ended before its turn
	for _, turn := range []*Turn{first, second, third} {
		if err := turn.AwaitPlace(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
