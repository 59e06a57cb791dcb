package control

import (
	"fmt"

	"gbatch/internal/job"
	"gbatch/internal/state"
)

// loads takes in how busy a node's GPUs are, and ends jobs that have asked to be
// ended when theirs do nothing.
func (e NodeSync) loads(s *step) {
	n := s.nodes.get(e.Name)
	if n == nil || len(e.Loads) == 0 {
		return
	}
	for _, num := range n.Jobs { // the slice is never changed in place
		j := s.jobs.get(num)
		if j == nil || j.State != job.Running || j.Ending != nil || j.Request.IdleWindow == 0 || j.Attempt.Paused != "" {
			delete(s.idle, num)
			continue
		}
		busiest, ok := s.idle.Add(s.now, j, e.Name, e.Loads)
		if !ok || busiest >= int64(j.Request.IdleMin)*10 {
			continue
		}
		delete(s.idle, num)
		s.attempts.stop(j, state.Ending{Reason: job.Utilization, Then: job.Failed, Text: fmt.Sprintf(
			"its GPUs were idle: over %s the busiest was used %d.%d %% of the time, and the job wants %d %% or its end",
			job.Duration(j.Request.IdleWindow/1000), busiest/10, busiest%10, j.Request.IdleMin)})
	}
}
