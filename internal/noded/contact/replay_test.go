package contact

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"gbatch/internal/api"
)

// replaying is a controller behind something that repeats the first answer.
type replaying struct {
	Controller
	first *api.SyncResponse
}

func (r *replaying) NodeSync(_ context.Context, _ string, req *api.SyncRequest) (*api.SyncResponse, error) {
	if r.first == nil {
		r.first = &api.SyncResponse{Version: 5, Changed: true, LeaseMS: 60_000, Nonce: req.Nonce}
		return r.first, nil
	}
	return r.first, nil
}

type countedNode struct {
	Node
	desired []uint64
}

func (n *countedNode) Report() *api.SyncRequest      { return &api.SyncRequest{} }
func (n *countedNode) Noted(uint64)                  {}
func (n *countedNode) OrderReboot(uint64)            {}
func (n *countedNode) Desire(resp *api.SyncResponse) { n.desired = append(n.desired, resp.Version) }

// TestReplayedAnswer: an answer that comes again is not acted on, also where its version is
// below that of the desired set in force, and does not renew the lease.
func TestReplayedAnswer(t *testing.T) {
	n := &countedNode{}
	c := Open(Options{Name: "n1", File: filepath.Join(t.TempDir(), "contact"), Boot: "b", Lease: time.Minute, Controller: &replaying{}, Node: n, Log: slog.New(slog.DiscardHandler)})
	if err := c.sync(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	c.order.seen = 9 // and others since
	last := c.lease.last
	if err := c.sync(t.Context(), 0); !errors.Is(err, errNotAnswer) {
		t.Errorf("an answer to another request: %v", err)
	}
	if len(n.desired) != 1 || c.order.seen != 9 || c.lease.last != last {
		t.Errorf("it was acted on: desired %v, version %d, lease from %v, was %v", n.desired, c.order.seen, c.lease.last, last)
	}
}
