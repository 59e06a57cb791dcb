package launches

import (
	"context"
	"errors"
	"testing"

	"gbatch/internal/launch"
)

// recorded has recorded everything.
type recorded struct{}

func (recorded) Begin(context.Context, launch.NodeBegin) (uint32, error) { return 0, nil }
func (recorded) End(context.Context, launch.NodeEnd) error               { return nil }

// TestCounting: the most that was told counts, as ends may be told again.
func TestCounting(t *testing.T) {
	dir := t.TempDir()
	end := func(n uint64) error {
		return Counting(recorded{}, dir).End(t.Context(), launch.NodeEnd{Killed: n})
	}
	if err := errors.Join(end(0), end(2), end(1)); err != nil || Killed(dir) != 2 {
		t.Errorf("noted %d: %v", Killed(dir), err)
	}
}
