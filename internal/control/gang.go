package control

import (
	"fmt"

	"gbatch/internal/job"
	"gbatch/internal/state"
)

// letBegin wakes the nodes when more ranks of a gang may begin than before.
func (c *step) letBegin(before, j *state.Job) {
	if len(j.Attempt.Ranks) > 1 && j.Begun() > before.Begun() {
		c.wakeNodesOf(j)
	}
}

// masterDone ends the other ranks of a gang that is over when rank 0 is. It
// says whether it did.
func (c *step) masterDone(j *state.Job, i int, r state.Rank) bool {
	if i != 0 || j.Request.StopWhen != job.MasterDone || j.Ending != nil || r.Exit == nil || !r.Exit.OK() {
		return false
	}
	how := c.stopWith(j)
	how.Then, how.Text = job.Finished, fmt.Sprintf("rank 0 is done on %s: the others are ended", r.Alloc.Node)
	c.end(j, how)
	return true
}
