package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"gbatch/internal/control/idle"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Gangs of a random history start in two phases, and GPUs may be idle.

// gang draws in which order the ranks of a gang start, and what ends it.
func (x *chaos) gang(req *state.Request) {
	if req.Shape.Nodes > 1 {
		req.StartOrder = []string{"", job.MasterFirst, job.WorkersFirst}[x.rng.IntN(3)]
		req.StopWhen = []string{"", job.MasterDone}[x.rng.IntN(2)]
	}
}

func sortedRanks[V any](set map[job.RankID]V) []job.RankID {
	return slices.SortedFunc(maps.Keys(set), func(a, b job.RankID) int {
		return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.Rank, b.Rank))
	})
}

// lose lets all that is on a node end without a word.
func (n *fakeNode) lose() {
	clear(n.runs)
	clear(n.ready)
}

// waits makes a gang's rank ready, and says whether it is to wait for others.
func (x *chaos) waits(n *fakeNode, j *state.Job, i int) bool {
	id := j.RankID(i)
	if len(j.Attempt.Ranks) == 1 || n.ready[id] && j.MayBegin(i) {
		return false
	}
	if !x.oneIn(3) { // it may take a while
		n.ready[id], x.ready[id] = true, true
	}
	return true
}

// begin fails the history if the program of a gang's rank begins before all are
// ready, or out of order.
func (x *chaos) begin(n *fakeNode, j *state.Job, i int) {
	id := j.RankID(i)
	delete(n.ready, id)
	x.begun[id] = true
	if x.idle[j.Number] = x.idle[j.Number] || j.Request.IdleWindow > 0 && x.oneIn(2); len(j.Attempt.Ranks) == 1 {
		return
	}
	x.tally.Gangs++
	for k := range j.Attempt.Ranks {
		other := j.RankID(k)
		switch order := j.Request.StartOrder; {
		case !x.ready[other]:
			x.fail(fmt.Errorf("rank %d of job %d begins, and rank %d was never ready", i, j.Number, k))
		case order == job.MasterFirst && i > 0 && k == 0 && !x.begun[other], order == job.WorkersFirst && i == 0 && k > 0 && !x.begun[other]:
			x.fail(fmt.Errorf("rank %d of job %d begins before rank %d: it asks for %s", i, j.Number, k, order))
		}
	}
}

// idleGPU lets a random job be ended when its GPUs do nothing.
func (x *chaos) idleGPU(req *state.Request) {
	if req.Shape.MilliGPU > 0 && x.oneIn(3) {
		req.IdleMin, req.IdleWindow = 10, 15*sched.Minute
	}
}

// loads is how busy a node's GPUs are: those of idle jobs are not.
func (x *chaos) loads(n *fakeNode) (out []idle.Load) {
	busy := map[string]bool{}
	v := x.c.View(x.now)
	for id := range n.runs { // into a set: order does not matter
		if j := v.Job(id.Job); j != nil && j.State.Active() && j.Attempt.Attempt == id.Attempt && !x.idle[j.Number] {
			for _, g := range j.Attempt.Ranks[id.Rank].Alloc.GPUs {
				busy[g.UUID] = true
			}
		}
	}
	for _, g := range n.Inventory.GPUs {
		out = append(out, idle.Load{UUID: g.UUID, Permille: map[bool]int{true: 900}[busy[g.UUID]]})
	}
	return out
}

// checkEnds verifies of jobs that changed that idle GPUs ended only those whose
// GPUs were idle, and that a template has one live job at most.
func (x *chaos) checkEnds(changed []job.Number) error {
	v := x.c.View(x.now)
	for _, n := range changed {
		j := v.Job(n)
		switch {
		case j == nil:
		case j.Reason == job.Utilization && !x.idle[n]:
			return fmt.Errorf("job %d was ended for idle GPUs, which were busy", n)
		case j.Reason == job.Utilization && j.State == job.Failed:
			x.tally.Idle++
		case j.Template != 0 && j.Version == 1:
			x.tally.Made++
			for o := range v.All() {
				if o.Template == j.Template && o.Number != n && !o.State.Final() {
					return fmt.Errorf("template %d made job %d while job %d is %s", j.Template, n, o.Number, o.State)
				}
			}
		}
	}
	return nil
}
