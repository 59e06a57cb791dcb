package sim

import (
	"fmt"
	"slices"

	"gbatch/internal/control"
	"gbatch/internal/job"
)

// calm lets all come to its end: nothing befalls anybody any more, and what
// begins runs briefly. It fails the history if nothing happens for long.
func (x *chaos) calm() {
	const patience = 200
	for _, n := range x.nodes {
		n.silent = 0
		apply(x, control.Drain{Node: n.Name})
	}
	x.brief = true
	happened := x.tally.Started + x.tally.Ended
	for still := 0; x.err == nil; still++ {
		left := x.letGo()
		switch now := x.tally.Started + x.tally.Ended; {
		case len(left) == 0:
			return
		case now > happened:
			happened, still = now, 0
		case still == patience:
			v := x.c.View(x.now)
			j := v.Job(slices.Min(left))
			x.fail(fmt.Errorf("%d jobs never end; the first is job %s, %s: %s", len(left), j.ID(), j.State, v.Waiting(j)))
		}
		x.round()
		x.pass()
	}
}

// letGo ends templates, releases what is held, and tells which jobs are left.
func (x *chaos) letGo() (left []job.Number) {
	order := func(how control.Action, n job.Number) {
		apply(x, control.Act{Action: how, Numbers: []job.Number{n}, By: "ann", Operator: true}) // what operators hold, too
	}
	for j := range x.c.View(x.now).All() {
		switch {
		case j.State.Final():
			continue
		case j.Cron != nil:
			order(control.Cancel, j.Number)
		case j.State == job.OnHold:
			order(control.Release, j.Number)
		}
		left = append(left, j.Number)
	}
	return left
}
