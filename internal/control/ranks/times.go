package ranks

import (
	"cmp"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Word is when a node's word on a rank is taken in, and what bounds the times in it.
type Word struct {
	Now      sched.Time
	Together bool       // the rank's begin and end, and those of others, may be told together
	Before   sched.Time // when the node was heard before; 0: not in this start
	Booted   sched.Time // when what ran there before it was restarted had ended at the latest; 0: it was not
}

// lateWord is how long after it happened a begin or an end may be told for the
// controller's own time to be taken for it.
const lateWord = 10 * sched.Second

// Bound takes from the word, which may come late as when no controller ran,
// when a rank, which is as it was known, began and how it ended, and when it gave back what it held. A node says so about itself:
// it is believed within the attempt, and an end not before the node was last heard. What was heard to run had begun by then,
// whatever a node says later whose clock was set since.
func (w Word) Bound(at *state.Attempt, r *state.Rank, st node.RankStatus) {
	late := lateWord
	if w.Together {
		late = 0
	}
	if t := sched.Time(st.StartedMS); t > 0 && w.Now-t > late && r.Phase != node.PhaseRunning {
		r.Begun = max(t, at.Start)
	}
	if st.Exit == nil {
		return
	}
	e := *st.Exit
	t := sched.Time(cmp.Or(e.FreeMS, e.EndedMS))
	if t <= 0 || w.Now-t <= late {
		t = w.Now
	}
	if w.Booted > 0 && !at.Alone && e.Reason == job.NodeFail {
		t = min(t, w.Booted) // it says when it found out
	}
	e.FreeMS = int64(max(t, at.Start, r.Begun, w.Before))
	r.Exit = &e
}

// Freed is when a job's attempt gave back the last of what it held, which was not before
// the controller heard that it runs: a node's clock may seem to have been set since.
func Freed(now sched.Time, j *state.Job) sched.Time {
	end := max(j.Attempt.Start, j.Started)
	for _, r := range j.Attempt.Ranks {
		if r.Exit == nil || r.Exit.FreeMS == 0 {
			return now
		}
		end = max(end, sched.Time(r.Exit.FreeMS))
	}
	return min(end, now)
}
