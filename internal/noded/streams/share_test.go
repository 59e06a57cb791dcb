package streams

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/job"
	"gbatch/oci"
)

// slow is a controller whose clients say nothing, and a node where every rank
// runs.
type slow struct {
	Node
	refused atomic.Int32
}

func (s *slow) PostStreamAt(context.Context, string, int64, io.Reader) error { return nil }

func (s *slow) FailStream(context.Context, string, string) error {
	s.refused.Add(1)
	return nil
}

func (s *slow) DialStream(ctx context.Context, _ string) (*client.Stream, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (s *slow) Container(context.Context, job.RankID, string) (*oci.Container, error) {
	return nil, nil
}

// TestShares: users who open streams without end leave some for others.
func TestShares(t *testing.T) {
	ctl := &slow{}
	s := New(ctl, ctl, func(text string) string { return text }, slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(t.Context())
	asked := 0
	open := func(user string, n int) (opened int) {
		before := len(s.open)
		for range n {
			asked++
			s.Answer(ctx, api.StreamRequest{ID: fmt.Sprint(asked), Kind: api.StreamExec, User: user})
		}
		return len(s.open) - before
	}
	for _, tc := range []struct {
		user string
		want int
	}{{"b", maxStreams / 2}, {"b2", maxStreams / 4}, {"a", maxStreams / 8}, {"b", 0}} {
		if got := open(tc.user, tc.want+20); got != tc.want {
			t.Errorf("%s has opened %d, want %d", tc.user, got, tc.want)
		}
	}
	if got := open("a2", 3); got != 3 {
		t.Errorf("one who has none opened %d of 3", got)
	}
	stop()
	s.Wait()
	if got := ctl.refused.Load(); got != 4*20 {
		t.Errorf("%d were refused, want 80", got)
	}
}
