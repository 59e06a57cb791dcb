package control

import (
	"cmp"
	"fmt"
	"strings"

	"gbatch/internal/control/effects"
	"gbatch/internal/control/given"
	"gbatch/internal/control/launches"
	"gbatch/internal/control/ledger"
	"gbatch/internal/control/ranks"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
)

// attempts is what becomes of jobs that hold something, from the order to run
// until all ranks have ended. It has no state of its own: jobs and nodes have it,
// and they, the scheduler and the ledger agree on it after each of its methods.
//
// To stop is to order an end: the nodes end their ranks and say so. To close is
// to take in that all has ended.
type attempts struct {
	jobs   *jobs
	nodes  *nodes
	queue  *queue
	ledger *ledger.Ledger
	out    *effects.Output
	cfg    *Config
	given  given.Set // which jobs are to have the place of which
}

// check verifies that no GPU is granted twice.
func (a *attempts) check() error {
	if err := a.given.Check(&a.jobs.table); err != nil {
		return err
	}
	type grant struct{ node, gpu string }
	granted := map[grant]int64{}
	for j := range a.jobs.all() {
		if j.State.Active() != (j.Attempt != nil && j.Attempt.End == 0) {
			return fmt.Errorf("job %d: it is %s but its attempt says otherwise", j.Number, j.State)
		}
		if !j.State.Active() {
			if j.Ending != nil && j.Tasks == nil {
				return fmt.Errorf("job %d: it is %s and being ended", j.Number, j.State)
			}
			continue
		}
		for _, r := range j.Attempt.Ranks {
			if !j.Holds() {
				break
			}
			for _, g := range r.Alloc.GPUs {
				k := grant{r.Alloc.Node, g.UUID}
				if granted[k] += g.Milli; granted[k] > 1000 {
					return fmt.Errorf("GPU %s of %s is granted %d/1000 times", g.UUID, r.Alloc.Node, granted[k])
				}
			}
		}
	}
	return nil
}

// close takes in that all ranks of an attempt have ended: the resources are free,
// the ledger is charged in the same step, and the job ends or waits again.
func (a *attempts) close(j *state.Job) {
	steps := launches.Of(j)
	steps.EndAll(a.out.Now)
	j = a.jobs.setLaunches(j, steps)
	at := *j.Attempt
	at.End = ranks.Freed(a.out.Now, j)
	if closed := *j; j.Holds() {
		a.queue.sched.End(sched.JobID(j.Number))
		closed.Attempt = &at
		a.ledger.Charge(&closed, a.ledger.End)
		at.Used = at.Used.Plus(a.ledger.Held(ledger.Charges(&closed)...))
	}
	a.out.Record(state.Record{Kind: state.KindAttempt, Job: j.Number, Seq: uint64(at.Attempt)}, &at)
	to, reason, text, retried := a.decide(j, &at)
	if ranks.Unsure(&at) && (to == job.Queued || to == job.Halted) {
		to, reason, text = job.OnHold, job.NodeFail, "it may have run on after the backup that was restored: release it if it shall start again"
	}
	j = a.jobs.change(j, ranks.EndLine(j, to, text), func(j *state.Job) {
		j.TakenBack += given.TakenBack(j.Ending, &at)
		j.Attempt, j.Ending, j.Retried = &at, nil, retried
		j.Used = j.Used.Plus(at.Used)
		j.State, j.Reason, j.Text = to, reason, text
		if j.Started > 0 {
			j.UsedRun += max(at.End-j.Started, 0)
		}
		switch to {
		case job.Halted:
			j.Next = a.jobs.next
		case job.Queued, job.OnHold:
			j.Started = 0
		}
	})
	if to == job.Halted {
		a.succeed(j)
	}
	if j.Started > 0 {
		a.given.Ran(j, at.End-j.Started)
	}
	a.inherit(j)
}

// decide says what becomes of a job whose attempt has ended.
func (a *attempts) decide(j *state.Job, at *state.Attempt) (job.State, job.Reason, string, *state.Retried) {
	bad := at.Decisive()
	reason, text := ranks.Reason(bad), ranks.Exit(bad)
	e := j.Ending
	if e != nil && e.Ahead && ranks.Began(at) {
		e = nil // too late
	}
	switch {
	case ranks.OK(at) && (e == nil || e.Then != job.Cancelled): // it reached its own end before an order did
		return job.Finished, job.None, "", j.Retried
	case e != nil && !e.Fault:
		return e.Then, e.Reason, e.Text, j.Retried
	case e != nil:
		reason, text = e.Reason, e.Text
	}
	v := a.retry(j, at, reason, text)
	if v.Hold {
		return job.OnHold, v.Reason, v.Text, &v.After
	}
	if v.Again {
		return job.Queued, v.Reason, v.Text, &v.After
	}
	return job.Failed, v.Reason, v.Text, &v.After
}

// lose ends the ranks of a node that match as lost; why is the sentence about it. They ended with their lease
// at the latest, however much later that is found out; those that have none, now.
func (a *attempts) lose(name, why string, match func(*state.Job, state.Rank) bool) {
	n := a.nodes.get(name)
	if n == nil {
		return
	}
	for _, num := range n.Jobs { // the slice is never changed in place
		j := a.jobs.get(num)
		for i := range j.Attempt.Ranks {
			r := j.Attempt.Ranks[i]
			if r.Alloc.Node != name || r.Phase == node.PhaseEnded || !match(j, r) {
				continue
			}
			r.Phase = node.PhaseEnded
			r.Exit = &node.Exit{Code: 255, Reason: job.NodeFail, EndedMS: int64(a.out.Now), Message: why}
			if !j.Attempt.Alone {
				over := max(a.cfg.patience().Over(a.out.Now, n), j.Attempt.Start, j.Started)
				r.Exit.EndedMS, r.Exit.FreeMS = int64(over), int64(over)
			}
			a.advance(j, i, r)
			if j = a.jobs.get(num); !j.State.Active() {
				break
			}
		}
	}
}

// assign gives a job its resources and its nodes the order to run it.
func (a *attempts) assign(s sched.Start) {
	j := a.jobs.get(job.Number(s.Job))
	at := &state.Attempt{Attempt: j.Tries + 1, Start: a.out.Now, Alone: a.runsAlone(j), Partition: s.Partition, Image: j.Image(a.jobs.get(j.Parent))}
	if s.Limit > 0 {
		at.Limit = min(s.Limit, j.LimitLeft())
	}
	if j.Request.LimitScope == job.LimitJob {
		at.Limit = j.Request.Limit
		if end := a.jobs.limitEnd(j); end > 0 {
			at.Limit = max(end-a.out.Now, 1)
		}
	}
	for _, alloc := range s.Ranks {
		n := a.nodes.get(alloc.Node)
		at.Ranks = append(at.Ranks, state.Rank{Alloc: alloc, Phase: node.PhaseAssigned, Instance: n.Instance, Knew: n.Knows, Model: n.ModelOf(alloc), Cluster: n.Inventory.Cluster})
	}
	names, waited := ranks.Nodes(at), a.out.Now-j.Since
	j = a.jobs.change(j, "assigned to "+strings.Join(names, ", "), func(j *state.Job) {
		j.State, j.Attempt, j.Tries = job.Assigned, at, j.Tries+1
		if j.Request.LimitScope == job.LimitAttempt {
			j.Warned = 0
		}
		j.Reason, j.Text = job.None, ""
	})
	a.queue.start(j)
	a.ledger.Charge(j, a.ledger.Begin)
	a.ledger.CountStart(ledger.Charges(j)[0], int64(waited))
	a.ledger.Defer(ledger.Charges(j)[0], int64(s.Until))
	for _, name := range names {
		a.nodes.arrive(name, j.Number)
	}
}

// stop orders the end of a running attempt, by the job's own signal where how
// names none.
func (a *attempts) stop(j *state.Job, how state.Ending) {
	if how.Signal == "" {
		how.Signal, how.Grace = a.stopSignal(j)
	}
	how.Since = a.out.Now
	j = a.jobs.change(j, how.Text, func(j *state.Job) {
		j.Ending = &how
		if how.Then == job.Halted {
			j.State = job.MustHalt
		}
	})
	a.queue.sched.Halting(sched.JobID(j.Number)) // what it holds is expected back soon
	a.nodes.wakeAll(j)
}

// stopSignal is how a job is asked to end, and how long it has then.
func (a *attempts) stopSignal(j *state.Job) (string, sched.Time) {
	return cmp.Or(j.Request.StopSignal, "TERM"), cmp.Or(max(j.Request.StopGrace, 0), a.cfg.Grace)
}
