package control

import (
	"fmt"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/sched"
)

// MayBegin says whether the program of rank i may begin: a gang's when all
// ranks are ready, and then in the order that the job wants.
func (j *Job) MayBegin(i int) bool {
	ranks := j.Attempt.Ranks
	if len(ranks) == 1 {
		return true
	}
	if j.Ending != nil {
		return false // a rank may have ended without being ready
	}
	first, others := false, true // run or have run
	for k, r := range ranks {
		if !r.Phase.After(node.PhaseStarting) {
			return false
		}
		runs := r.Phase.After(node.PhaseReady)
		if k == 0 {
			first = runs
		} else {
			others = others && runs
		}
	}
	switch j.Request.StartOrder {
	case job.MasterFirst:
		return i == 0 || first
	case job.WorkersFirst:
		return i > 0 || others
	}
	return true
}

// begun is how many ranks may begin.
func (j *Job) begun() int {
	n := 0
	for i := range j.Attempt.Ranks {
		if j.MayBegin(i) {
			n++
		}
	}
	return n
}

// letBegin wakes the nodes when more ranks of a gang may begin than before.
func (c *Controller) letBegin(before, j *Job) {
	if len(j.Attempt.Ranks) > 1 && j.begun() > before.begun() {
		c.wakeNodesOf(j)
	}
}

// masterDone ends the other ranks of a gang that is over when rank 0 is. It
// says whether it did.
func (c *Controller) masterDone(now sched.Time, j *Job, i int, r Rank) bool {
	if i != 0 || j.Request.StopWhen != job.MasterDone || j.Ending != nil || r.Exit == nil || !r.Exit.OK() {
		return false
	}
	how := c.stopWith(j)
	how.Then, how.Text = job.Finished, fmt.Sprintf("rank 0 is done on %s: the others are ended", r.Alloc.Node)
	c.end(now, j, how)
	return true
}
