package state

import (
	"gbatch/internal/job"
	"gbatch/internal/node"
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

// Begun is how many ranks may begin.
func (j *Job) Begun() int {
	n := 0
	for i := range j.Attempt.Ranks {
		if j.MayBegin(i) {
			n++
		}
	}
	return n
}
