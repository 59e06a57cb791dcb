package control

import (
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
)

// loseNode ends the ranks of a node that match as lost; why is the sentence about it.
func (c *step) loseNode(name, why string, match func(state.Rank) bool) {
	n := c.node(name)
	if n == nil {
		return
	}
	for _, num := range n.Jobs { // the slice is never changed in place
		j := c.job(num)
		for i := range j.Attempt.Ranks {
			r := j.Attempt.Ranks[i]
			if r.Alloc.Node != name || r.Phase == node.PhaseEnded || !match(r) {
				continue
			}
			r.Phase = node.PhaseEnded
			r.Exit = &node.Exit{Code: 255, Reason: job.NodeFail, EndedMS: int64(c.now), Message: why}
			c.advance(j, i, r)
			if j = c.job(num); !j.State.Active() {
				break
			}
		}
	}
}
