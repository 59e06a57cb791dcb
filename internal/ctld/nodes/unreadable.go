package nodes

import (
	"context"
	"errors"

	"gbatch/internal/api"
	"gbatch/internal/control"
	"gbatch/internal/ctld/loop"
	"gbatch/internal/node"
	"gbatch/internal/state"
)

// errUnreadable is of what is stored with one job and cannot be read: that job fails,
// and its node is told of the others.
var errUnreadable = errors.New("what is stored with the job cannot be read")

// complete adds to an order what the node does not hold yet; held is what it says of the rank, nil
// if it has none. A job that runs goes on where its newest secrets cannot be
// read; one that shall start fails where its records cannot, and waits where something of it
// cannot be stored now. False says that there is no order for it.
func (s *Exchange) complete(ctx context.Context, o *api.Order, j *state.Job, rank int, held *node.RankStatus) bool {
	var err error
	has := uint32(0)
	if held != nil {
		has = held.Secrets
		o.LimitMS = int64(j.LimitLeft())
	} else {
		o.Run, err = s.runOrder(j, rank)
	}
	if err == nil {
		err = s.addSecrets(o, j, has)
	}
	if errors.Is(err, errUnreadable) {
		s.Log.Error("what is stored with a job cannot be read: see `gctld fsck`", "job", j.Number, "error", err)
		if held != nil {
			return true
		}
		if _, err = loop.Do(ctx, s.Loop, control.Unreadable{Job: j.Number, Attempt: j.Attempt.Attempt,
			Text: "its document or its sealed values cannot be read from the controller's store any more: submit it again"}); err == nil {
			return false
		}
	}
	if name := j.Attempt.Ranks[rank].Alloc.Node; err != nil && s.withheld.add(name) {
		s.Log.Warn("a node is told of a job later", "job", j.Number, "node", name, "error", err)
	}
	return err == nil || held != nil
}
