package control

import (
	"cmp"
	"slices"

	"gbatch/internal/state"
)

// runsAlone says whether a job that begins now runs on where its node loses
// contact: its class is for what must never be started a second time while
// nobody knows what became of the first.
func (a *attempts) runsAlone(j *state.Job) bool {
	return slices.Contains(a.cfg.RunsAlone, cmp.Or(j.Owner.QOS, a.cfg.Policy.DefaultQOS))
}

// alone has the jobs that run on without contact on a node say so, by why; empty:
// there is contact again. line is for their timelines; empty: why.
func (a *attempts) alone(name, why, line string) {
	for _, num := range a.nodes.get(name).Jobs { // the slice is never changed in place
		if j := a.jobs.get(num); j.Attempt.Alone {
			a.jobs.change(j, cmp.Or(line, why), func(j *state.Job) { j.Text = why })
		}
	}
}
