package control

import (
	"cmp"
	"fmt"

	"gbatch/internal/control/amend"
	"gbatch/internal/control/picture"
	"gbatch/internal/control/ranks"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
	"gbatch/sched/words"
)

// Resize asks for other CPU and memory for a running job's present attempt; a
// zero keeps what it has. The caller has checked that By may do it.
//
// What is more is the job's at once, if its nodes have it; what is less is free
// only once its node has taken it away, as it may be in use.
type Resize struct {
	Number   job.Number
	MilliCPU int64 // of each rank
	MemMiB   int64 // of each rank, with its tmpfs
	By       string
}

func (e Resize) apply(s *step) (Result, *state.Refusal) {
	j := s.jobs.get(e.Number)
	if j == nil {
		return Result{Refusal: state.NoSuchJob(fmt.Sprint(e.Number))}, nil
	}
	out := Result{Before: j.State, After: j.State}
	targets, why := e.targets(s, j)
	if why != nil {
		out.Refusal = why
		return out, nil
	}
	s.attempts.takeBack(j, fmt.Sprintf("job %s is resized", j.ID()))
	text := ""
	for i, to := range targets {
		from := j.Attempt.Ranks[i].Alloc
		if to.MilliCPU == from.MilliCPU && to.MemMiB == from.MemMiB {
			continue
		}
		held := to
		held.MilliCPU, held.MemMiB = max(to.MilliCPU, from.MilliCPU), max(to.MemMiB, from.MemMiB)
		text = fmt.Sprintf("%s by %s: from %s to %s", "resized", e.By, words.Size(from), words.Size(to))
		j = s.attempts.regrant(j, i, "", func(r *state.Rank) {
			r.Alloc, r.Resize = held, &state.Resizing{Seq: j.Version + 1, To: to, From: from}
		})
	}
	if text == "" {
		out.Message = "has that already"
		return out, nil
	}
	s.nodes.wakeAll(s.jobs.change(j, text, func(*state.Job) {})) // one line for all its ranks
	out.Message = text
	return out, nil
}

func (e Resize) audit(o Result) Audit {
	return Audit{Object: fmt.Sprintf("job %d", e.Number), Change: cmp.Or(o.Message, "resized"), Refusal: o.Refusal}
}

// targets is what each rank is to have, or why it cannot.
func (e Resize) targets(s *step, j *state.Job) ([]sched.Allocation, *state.Refusal) {
	conflict := func(format string, args ...any) *state.Refusal {
		return &state.Refusal{Code: state.Conflict, Message: fmt.Sprintf(format, args...)}
	}
	if j.State != job.Running || j.Ending != nil {
		r := conflict("job %d is %s: only a job that runs can be resized", j.Number, j.Words())
		r.Hint = "cancel it and submit it again with other resources"
		return nil, r
	}
	if len(j.Request.Shape.Groups) > 0 || j.Request.Shape.Shares() {
		r := conflict("job %d has groups of nodes with amounts of their own, or ranks that may share nodes, and cannot be resized", j.Number)
		r.Hint = "cancel it and submit it again with other resources"
		return nil, r
	}
	var out []sched.Allocation
	for i := range j.Attempt.Ranks {
		r := &j.Attempt.Ranks[i]
		if r.Asked() != nil {
			return nil, conflict("job %d is being resized already; %s has not answered yet", j.Number, r.Alloc.Node)
		}
		if r.Phase != node.PhaseRunning {
			return nil, conflict("rank %d of job %d is %s: only ranks that run can be resized", i, j.Number, r.Phase)
		}
		to := r.Alloc
		to.MilliCPU, to.MemMiB = cmp.Or(e.MilliCPU, to.MilliCPU), cmp.Or(e.MemMiB, to.MemMiB)
		if why := e.roomFor(s, j, r.Alloc, to); why != "" {
			r := conflict("%s", why)
			r.Hint = "ask for less, or wait until others have ended"
			return nil, r
		}
		out = append(out, to)
	}
	return out, nil
}

// roomFor says why a node cannot give a rank what is more. What is free now has
// to be enough, and what is left of it at the start of a job that the plan
// holds the node for.
func (e Resize) roomFor(s *step, j *state.Job, from, to sched.Allocation) string {
	cpu, mem := to.MilliCPU-from.MilliCPU, to.MemMiB-from.MemMiB
	if cpu <= 0 && mem <= 0 {
		return ""
	}
	more := words.Size(sched.Allocation{MilliCPU: max(cpu, 0), MemMiB: max(mem, 0)})
	if free := s.freeOn(from.Node, 0); cpu > free.MilliCPU || mem > free.MemMiB {
		return fmt.Sprintf("job %d asks for %s more, and %s has %s free", j.Number, more, from.Node, words.Size(free))
	}
	if s.queue.plan == nil {
		return ""
	}
	end := j.Attempt.Start + j.LimitLeft()
	for _, res := range s.queue.plan.Reservations {
		for _, a := range res.Ranks {
			if a.Node != from.Node || res.At >= end {
				continue
			}
			then := s.freeOn(from.Node, res.At)
			if cpu > then.MilliCPU-a.MilliCPU && cpu > 0 || mem > then.MemMiB-a.MemMiB && mem > 0 {
				return fmt.Sprintf("job %d asks for %s more, which %s is to give to job %d before this job's time limit", j.Number, more, from.Node, job.Number(res.Job))
			}
		}
	}
	return ""
}

// freeOn is what no job holds of a node at a moment.
func (s *step) freeOn(name string, at sched.Time) sched.Allocation {
	return amend.FreeOn(s.nodes.get(name), &s.jobs.table, at)
}

// regrant changes a rank and the CPU and memory that it holds. The scheduler and the
// ledger learn of it here, as both would go on with the old ones.
func (a *attempts) regrant(j *state.Job, i int, line string, edit func(*state.Rank)) *state.Job {
	old := j.Attempt.Ranks[i]
	same := false
	at := ranks.With(j.Attempt, i, func(r *state.Rank) {
		edit(r)
		if same = r.Alloc.MilliCPU == old.Alloc.MilliCPU && r.Alloc.MemMiB == old.Alloc.MemMiB; !same {
			r.Since = a.out.Now
		}
	})
	if !same {
		must(a.ledger.End(j.Charge(old, a.out.Now)))
		at.Used = at.Used.Plus(a.ledger.Held(j.Charge(old, a.out.Now)))
	}
	j = a.jobs.change(j, line, func(j *state.Job) { j.Attempt = at })
	if !same {
		must(a.ledger.Begin(j.Charge(at.Ranks[i], 0)))
		a.queue.sched.Resize(sched.JobID(j.Number), picture.Running(j).Ranks)
		a.queue.due = true
	}
	return j
}

// resized takes in what a node says of a resize that it was asked for. What it says of an
// earlier one changes nothing.
func (a *attempts) resized(j *state.Job, i int, st node.RankStatus) {
	r := j.Attempt.Ranks[i]
	asked := r.Asked()
	if asked == nil || st.Resize == nil || st.Resize.Seq != asked.Seq {
		return
	}
	if why := st.Resize.Error; why != "" {
		failed := *asked
		failed.Failed = why
		j = a.regrant(j, i, "not resized: "+why, func(r *state.Rank) { r.Alloc, r.Resize = asked.From, &failed })
	} else {
		line := fmt.Sprintf("has %s on %s", words.Size(asked.To), r.Alloc.Node)
		j = a.regrant(j, i, line, func(r *state.Rank) {
			r.Alloc, r.Resize = asked.To, nil
			if st.Cores != "" {
				r.Cores = st.Cores
			}
		})
	}
	a.nodes.wake(r.Alloc.Node)
}
