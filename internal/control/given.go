package control

import (
	"fmt"

	"gbatch/internal/control/given"
	"gbatch/internal/control/ledger"
	"gbatch/internal/control/picture"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
)

// A task that was given ahead has an attempt and may have begun, so it starts nowhere else; but it
// holds nothing until the one before it has given back what it held, and takes that over in the
// same step. To the scheduler and the ledger it is as if it had been started then. Where somebody
// else is to start it is taken back, by the order to end that every attempt knows, which counts only
// before it has begun.

// loadGiven takes in a job of the records that is behind another one.
func (a *attempts) loadGiven(j *state.Job) error {
	before := a.jobs.get(j.Attempt.Behind)
	if before == nil || !before.State.Active() || len(j.Attempt.Ranks) != 1 {
		return fmt.Errorf("it is to have the place of job %d, which holds none", j.Attempt.Behind)
	}
	a.given.Put(before, j)
	return nil
}

// inherit gives the place of a job that has ended to the one behind it.
func (a *attempts) inherit(before *state.Job) {
	at := before.Last()
	name, next := at.Ranks[0].Alloc.Node, a.given.Next(before.Number)
	if next > 0 {
		a.given.Drop(before.Number, name)
	}
	if at.Behind > 0 { // it never had one
		a.given.Drop(at.Behind, name)
	}
	if next == 0 {
		return
	}
	j := a.jobs.get(next)
	to := *j.Attempt
	to.Behind, to.Start = at.Behind, at.End
	j = a.jobs.change(j, "", func(j *state.Job) { j.Attempt, j.Text = &to, "" })
	if to.Behind > 0 {
		a.given.Put(a.jobs.get(to.Behind), j)
		return
	}
	a.given.Watch(j)
	must(a.queue.sched.Adopt(picture.Running(j))) // it was free in this step
	a.ledger.Charge(j, a.ledger.Begin)
	a.ledger.CountStart(ledger.Charges(j)[0], int64(max(to.Start-j.Submitted, 0)))
}

// takeBack has the jobs behind one wait again: nobody is to have its place but by the plan.
func (a *attempts) takeBack(before *state.Job, why string) {
	for n := range a.given.Behind(before.Number) {
		if j := a.jobs.get(n); j.Ending == nil {
			a.stop(j, state.Ending{Signal: "KILL", Ahead: true, Then: job.Queued, Text: "taken back: " + why})
		}
	}
}

// give has a node begin a job when another one, which it may have already, has ended there.
func (a *attempts) give(j, before *state.Job) *state.Job {
	r := before.Attempt.Ranks[0]
	n := a.nodes.get(r.Alloc.Node)
	at := &state.Attempt{
		Attempt: j.Tries + 1, Start: a.out.Now, Given: a.out.Now, Behind: before.Number, Partition: before.Attempt.Partition, Image: j.Image(a.jobs.get(j.Parent)),
		Ranks: []state.Rank{{Alloc: r.Alloc, Phase: node.PhaseAssigned, Instance: n.Instance, Knew: n.Knows, Model: r.Model, Cluster: r.Cluster}},
	}
	j = a.jobs.change(j, fmt.Sprintf("given to %s ahead, behind %s", n.Name, before.ID()), func(j *state.Job) {
		j.State, j.Attempt, j.Tries = job.Assigned, at, j.Tries+1
		if j.Request.LimitScope == job.LimitAttempt {
			j.Warned = 0
		}
		j.Reason, j.Text = job.None, fmt.Sprintf("begins on %s when %s has ended there", n.Name, before.ID())
	})
	a.queue.dequeue(j.Number)
	a.given.Put(before, j)
	a.nodes.arrive(n.Name, j.Number)
	return j
}

// ahead gives nodes further tasks of what runs there, and takes back what they were given where
// others are to start, by a plan.
func (s *step) ahead(plan *sched.Plan) {
	if !s.attempts.given.Concerns(plan, &s.jobs.table) {
		return
	}
	claims := given.ClaimsOf(plan, &s.jobs.table)
	for _, name := range s.attempts.given.Nodes() {
		n := s.nodes.get(name)
		for _, num := range n.Jobs { // the slice is never changed in place
			if j := s.jobs.get(num); j.Holds() {
				if why := claims.Ends(j, n, s.queue.windows); why != "" {
					s.attempts.takeBack(j, why)
				}
			}
		}
	}
	rows := map[given.Kind]*given.Rows{}
	for _, r := range plan.Reservations {
		j := s.jobs.get(job.Number(r.Job))
		if !s.attempts.given.May(j) {
			continue
		}
		kind := given.KindOf(j)
		if rows[kind] == nil {
			rows[kind] = s.attempts.given.RowsOf(kind, claims, given.Site{Now: s.now, Jobs: &s.jobs.table, Node: s.nodes.get, Windows: s.queue.windows})
		}
		if before, added := rows[kind].For(j); before != nil {
			added(s.attempts.give(j, before))
		}
	}
}

// given takes back what is behind a job that runs for longer than those before it did.
func (Tick) given(s *step) {
	for n, due := s.attempts.given.TakeDue(s.now); due; n, due = s.attempts.given.TakeDue(s.now) {
		if j := s.jobs.get(n); j != nil && j.State.Active() && j.Attempt.Start+2*given.Time <= s.now {
			s.attempts.takeBack(j, fmt.Sprintf("job %s runs for longer than those before it", j.ID()))
		}
	}
}
