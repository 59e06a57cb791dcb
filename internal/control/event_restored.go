package control

import (
	"fmt"

	"gbatch/internal/control/ranks"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
)

// Restored says, before anything else after a load, that the records come from
// a backup. What has happened since is known to nodes and people alone, and
// nothing may run twice for it:
//
//   - A job that waited may have run. It is on hold until somebody lets it go.
//   - A rank that ran goes on if its node still has it; else it has ended, and
//     how is not known. Its job does not start again by itself.
//   - What a node has beyond that was started later. It is ended there, and the
//     node gets nothing new before it is gone.
//   - Numbers of jobs and attempts that were given since are not given again.
type Restored struct {
	Skip    job.Number // so many numbers of jobs are left out
	Queue   bool       // what waited goes on waiting, though it may have run
	NoVault bool       // what is sealed cannot be opened any more
	Late    bool       // found out by what a node says: jobs submitted since the load are not meant
}

// wentBack takes in that a node knows of more than the records, as when the whole
// directory was put back from an older copy. It is as if a backup had been
// restored, which a node that is unsure was told of already; and no number is given
// that a job may have had. It says whether it was new.
func (e NodeSync) wentBack(s *step) bool {
	if !e.Ahead {
		return false
	}
	s.jobs.skipTo(e.Next)
	s.nodes.skipTo(e.Seen)
	n := s.nodes.get(e.Name)
	if n == nil {
		return false
	}
	s.nodes.wake(e.Name) // with a version that is new to it
	if n.Unsure {
		return false
	}
	Restored{Late: true}.apply(s)
	return true
}

func (e Restored) apply(s *step) (none, *state.Refusal) {
	s.jobs.skipTo(s.jobs.next + e.Skip)
	for n := range s.nodes.list.All() {
		v := *n
		v.Unsure = true
		s.nodes.set(v)
	}
	var numbers []job.Number
	for j := range s.jobs.all() {
		if !j.State.Final() && (!e.Late || j.Number < s.jobs.loaded) {
			numbers = append(numbers, j.Number)
		}
	}
	for _, n := range numbers {
		if j := s.jobs.get(n); !j.State.Final() { // another's end may have ended it
			e.restore(s, j)
		}
	}
	return none{}, nil
}

func (Restored) audit(none) Audit { return Audit{Change: "restored from a backup"} }

// restore says of a job that is not over what the backup leaves open, and keeps it
// from running twice.
func (e Restored) restore(s *step, j *state.Job) {
	text := "restored from a backup"
	if e.Late {
		text = "the controller's records went back to an older state"
	}
	const sealed = "its secrets were lost: submit it again"
	switch {
	case j.Tasks != nil && j.Sealed && e.NoVault:
		s.arrays.stop(j, state.Ending{Then: job.Failed, Reason: job.Server, Text: sealed})
	case j.State.Active():
		at := *j.Attempt
		at.Ranks = append([]state.Rank(nil), at.Ranks...)
		for i := range at.Ranks {
			at.Ranks[i].Unsure = at.Ranks[i].Phase != node.PhaseEnded
		}
		s.jobs.change(j, text+"; its node is asked whether it still runs", func(j *state.Job) { j.Attempt = &at })
	case j.Sealed && e.NoVault:
		s.jobs.change(j, text+" without the key of its secrets", func(j *state.Job) {
			j.State, j.Reason, j.Text = job.Failed, job.Server, sealed
		})
	case j.State == job.Queued && j.Cron == nil && !e.Queue:
		text += ", on hold: it may have run since"
		s.jobs.change(j, text, func(j *state.Job) { j.State, j.Reason, j.Text = job.OnHold, job.Server, text })
	}
}

// reconcile compares what a node has with records from a backup.
func (e NodeSync) reconcile(s *step) {
	if !s.nodes.get(e.Name).Unsure {
		return
	}
	has := map[job.RankID]node.RankStatus{}
	for _, st := range e.Ranks {
		has[st.ID] = st
	}
	for _, num := range s.nodes.get(e.Name).Jobs {
		j := s.jobs.get(num)
		if at := ranks.Confirmed(j, e.Name, has); at != j.Attempt {
			s.jobs.change(j, "", func(j *state.Job) { j.Attempt = at })
		}
	}
	s.attempts.lose(e.Name, fmt.Sprintf("how it ended on %s is not known: that was after the backup which was restored", e.Name), func(_ *state.Job, r state.Rank) bool { return r.Unsure })
	unwanted := 0
	for _, st := range e.Ranks {
		j := s.jobs.get(st.ID.Job)
		if j != nil && !j.Is(st) {
			j = nil // another's, which had the number
		}
		if j != nil && st.ID.Attempt > j.Tries && !j.State.Final() {
			j = s.jobs.change(j, fmt.Sprintf("attempt %d began on %s after the backup; it is ended there", st.ID.Attempt, e.Name), func(j *state.Job) { j.Tries = st.ID.Attempt })
		}
		wanted := j != nil && j.State.Active() && j.Attempt.Attempt == st.ID.Attempt && j.On(e.Name)
		if !wanted && st.Phase != node.PhaseEnded {
			unwanted++
		}
	}
	if unwanted == 0 {
		n := *s.nodes.get(e.Name)
		n.Unsure = false
		s.nodes.set(n)
	}
}
