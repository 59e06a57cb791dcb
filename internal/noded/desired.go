package noded

import (
	"context"
	"fmt"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/noded/contact"
	"gbatch/internal/noded/rank"
	"gbatch/internal/noded/record"
)

// What contact asks of the node and tells it.

// Report is what the node says of itself and its ranks.
func (a *Agent) Report() *api.SyncRequest {
	inv, hash := a.inventory()
	req := &api.SyncRequest{
		Instance: a.instance, Boot: a.node.Boot, Inventory: inv, InventoryHash: hash, Unhealthy: a.publicReasons(),
		Samples: a.devices.Samples(), Storage: a.storageSamples(), Prepulled: a.publicPrepulled(a.ahead.Results()), Ranks: []node.RankStatus{},
		Checked: a.health.machine.Passed(), Reboot: a.publicReboot(),
	}
	for _, r := range a.all() {
		if r.Told() {
			continue
		}
		req.Ranks = append(req.Ranks, a.publicStatus(r.Status()))
		if use := r.Use(); use != nil {
			req.Use = append(req.Use, *use)
		}
	}
	// After the ranks: with a rank's end goes what the node is to be drained for.
	req.Faults = a.publicFaults()
	return req
}

// Noted says up to which of its faults the controller has drained the node.
func (a *Agent) Noted(seq uint64) { a.faults.Noted(seq) }

// Stream answers a request for bytes, in the background.
func (a *Agent) Stream(ctx context.Context, req api.StreamRequest) { a.streams.Answer(ctx, req) }

// LeaseOver ends every rank but those that run on alone: the controller may give
// the tasks to other nodes.
func (a *Agent) LeaseOver(silent, grace time.Duration) {
	text := fmt.Sprintf("lost contact with the controller for %s", silent.Round(time.Second))
	for _, r := range a.all() {
		if r.Order().Alone {
			continue
		}
		r.Stop(rank.Stop{Signal: "TERM", Grace: grace, Reason: job.NodeFail, Text: text})
	}
}

// wroteTooMuch ends a rank for what it wrote to the node's disk: at once, as it
// writes on.
func (a *Agent) wroteTooMuch(id job.RankID, text string) {
	for _, r := range a.all() {
		if r.Place() == id && r.Status().Exit == nil {
			r.Stop(rank.Stop{Signal: "KILL", Reason: job.Disk, Text: text})
		}
	}
}

// Desire compares the desired set with what the node holds and sets each
// difference in motion. It only starts things.
func (a *Agent) Desire(resp *api.SyncResponse) {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.later)
	wanted := make(map[job.RankID]bool, len(resp.Desired))
	for _, o := range resp.Desired {
		wanted[o.ID] = true
		a.want(o)
	}
	for id, r := range a.ranks {
		if !wanted[id] {
			r.Release()
		}
	}
	a.finishLeft()
	a.ahead.Want(resp.Prepull)
}

// finishLeft runs the epilogs of ranks that an earlier daemon began and that the
// controller does not want any more. Called with mu held.
func (a *Agent) finishLeft() {
	for _, id := range a.hooks.Left(func(id job.RankID, uuid string) bool {
		r := a.ranks[id]
		return r != nil && node.SameJob(r.UUID(), uuid)
	}) {
		a.log.Info("running the epilog of a rank that was begun and is not wanted any more", "rank", id)
		// Ends with the programs, or with the daemon; Run waits for it.
		a.wg.Go(func() { a.hooks.Finish(a.ctx, id) })
	}
}

// want makes one order true.
func (a *Agent) want(o api.Order) {
	r := a.ranks[o.ID]
	switch {
	case r != nil && !node.SameJob(r.UUID(), o.UUID):
		// Another job had the number. It is ended as what it is, and this one is
		// begun when nothing of it is left.
		a.log.Warn("the number of a rank here was given to another job: it is ended first", "rank", o.ID, "has", r.UUID(), "wanted", o.UUID)
		a.later[o.ID] = o
		r.Release()
		return
	case r == nil && o.Run == nil:
		// The controller took us to hold it. The next sync does not list it,
		// and then the order comes whole.
		a.log.Warn("order lacks what to run; asking again", "rank", o.ID)
		a.contact.Tell(contact.AtOnce)
		return
	case r == nil:
		r = rank.New(a.node, o.ID, *o.Run)
		a.ranks[o.ID] = r
		a.log.Info("rank accepted", "rank", o.ID, "job", o.ID.Job, "project", o.Run.Project, "image", o.Run.Spec.Request.Docker.Image)
		r.Want(o)
		if o.After != nil && a.ranks[*o.After] != nil {
			rank.Follow(r, a.ranks[*o.After])
		}
		a.start(r)
		a.contact.Tell(contact.WithinProgress)
		return
	}
	r.Want(o)
}

// start begins the life of a rank that was just ordered. Called with mu held.
func (a *Agent) start(r *rank.Rank) {
	id := r.Status().ID
	// Ends with the rank, or with the daemon; Run waits for it.
	a.wg.Go(func() {
		a.clearWay(id, r.UUID())
		a.keepLog(r)
		if r.Live(a.ctx) {
			a.forget(id, r)
		}
	})
}

// clearWay sees to the kept log of a rank of the same number: it is that of this
// very rank, which is ordered again, or of another job's, which is put aside.
func (a *Agent) clearWay(id job.RankID, uuid string) {
	dir := a.node.Dir(id)
	if !record.IsReleased(dir) {
		return
	}
	a.kept.remove(dir)
	if aside, err := rank.PutAside(dir, uuid); err != nil {
		a.log.Error("put aside the log of another job of the same number", "rank", id, "error", err)
	} else if aside != dir {
		a.kept.add(id, aside)
		a.keeper.Moved(dir, aside)
	}
}

// forget ends the agent's knowledge of a rank. Its log stays for a while.
func (a *Agent) forget(id job.RankID, r *rank.Rank) {
	dir := a.node.Dir(id)
	kept := r.PutAway()
	if kept {
		a.kept.add(id, dir)
	}
	if e := r.Status().Exit; kept && e != nil && !e.Silent {
		a.keeper.Over(dir)
	} else {
		a.keeper.Drop(dir)
	}
	a.hooks.Forget(id)
	a.mu.Lock()
	delete(a.ranks, id)
	if o, waits := a.later[id]; waits {
		delete(a.later, id)
		a.want(o)
	}
	a.mu.Unlock()
	a.kept.prune(time.Now())
	a.node.Reached("forgotten")
}
