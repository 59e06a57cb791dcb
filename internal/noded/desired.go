package noded

import (
	"time"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
)

// desire compares the desired set with what the node holds and sets each
// difference in motion. Called with a.mu held; it only starts things.
func (a *Agent) desire(orders []api.Order) {
	wanted := make(map[job.RankID]bool, len(orders))
	for _, o := range orders {
		wanted[o.ID] = true
		a.want(o)
	}
	for id, r := range a.ranks {
		if !wanted[id] {
			r.release()
		}
	}
}

// want makes one order true.
func (a *Agent) want(o api.Order) {
	r := a.ranks[o.ID]
	switch {
	case r == nil && o.Run == nil:
		// The controller took us to hold it. The next sync does not list it,
		// and then the order comes whole.
		a.log.Warn("order lacks what to run; asking again", "rank", o.ID)
		a.tell(newsNow)
		return
	case r == nil:
		r = a.accept(o)
	}
	r.takeSecrets(o.Secrets)
	r.setPaused(o.Paused)
	r.letBegin(o.Go)
	r.setResize(o.Resize)
	r.setSignals(o.Signals)
	if o.Stop != nil {
		r.requestStop(stopOf(o.Stop))
	}
}

// accept takes a new rank in and starts its life.
func (a *Agent) accept(o api.Order) *rank {
	id, order := o.ID, *o.Run
	r := a.newRank(id, order)
	r.takeSecrets(o.Secrets)
	a.ranks[id] = r
	a.log.Info("rank accepted", "rank", id, "job", id.Job, "project", order.Project, "image", order.Spec.Request.Docker.Image)
	a.start(r)
	a.tell(newsProgress)
	return r
}

// statuses is the node's word on every rank, by id. Called with a.mu held.
func (a *Agent) statuses() []node.RankStatus {
	list := make([]node.RankStatus, 0, len(a.ranks))
	for _, r := range a.ranks {
		list = append(list, r.statusNow())
	}
	sortStatuses(list)
	return list
}

// stopOf takes a stop order from the wire.
func stopOf(s *api.Stop) stopRequest {
	return stopRequest{
		Signal: s.Signal,
		Grace:  time.Duration(s.GraceMS) * time.Millisecond,
		Reason: s.Reason,
		Text:   s.Text,
	}
}
