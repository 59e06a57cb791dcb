package control

import (
	"fmt"

	"gbatch/internal/job"
	"gbatch/internal/state"
)

// letBegin wakes the nodes when more ranks of a gang may begin than before.
func (a *attempts) letBegin(before, j *state.Job) {
	if len(j.Attempt.Ranks) > 1 && j.Begun() > before.Begun() {
		a.nodes.wakeAll(j)
	}
}

// masterDone ends the other ranks of a gang that is over when rank 0 is. It
// says whether it did.
func (a *attempts) masterDone(j *state.Job, i int, r state.Rank) bool {
	if i != 0 || j.Request.StopWhen != job.MasterDone || j.Ending != nil || r.Exit == nil || !r.Exit.OK() {
		return false
	}
	a.stop(j, state.Ending{Then: job.Finished, Text: fmt.Sprintf("rank 0 is done on %s: the others are ended", r.Alloc.Node)})
	return true
}
