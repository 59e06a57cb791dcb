// Package ranks says what the ranks of an attempt come to: how far they are, how they
// ended, what of that is worth a word. It is pure and changes nothing.
package ranks

import (
	"fmt"
	"slices"
	"time"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
	"gbatch/sched/words"
)

// With is a changed copy of an attempt.
func With(at *state.Attempt, i int, edit func(*state.Rank)) *state.Attempt {
	b := *at
	b.Ranks = slices.Clone(at.Ranks)
	edit(&b.Ranks[i])
	return &b
}

// Nodes are those of an attempt, each once, in the order of the ranks.
func Nodes(at *state.Attempt) (names []string) {
	for _, r := range at.Ranks {
		if !slices.Contains(names, r.Alloc.Node) {
			names = append(names, r.Alloc.Node)
		}
	}
	return names
}

// Started is when the program of a rank that runs, or ran, began.
func Started(now sched.Time, r state.Rank) sched.Time {
	if r.Begun > 0 {
		return r.Begun
	}
	if r.Exit != nil && r.Exit.StartedMS > 0 {
		return min(sched.Time(r.Exit.StartedMS), now)
	}
	return now
}

// Least is how far the slowest rank is, and whether all have run.
func Least(a *state.Attempt) (node.Phase, bool) {
	least, running := node.PhaseEnded, true
	for _, r := range a.Ranks {
		if least.After(r.Phase) {
			least = r.Phase
		}
		ran := r.Phase == node.PhaseRunning || (r.Phase == node.PhaseEnded && r.Exit != nil && r.Exit.StartedMS > 0)
		running = running && ran
	}
	return least, running
}

// Reason is why a rank that is over has ended.
func Reason(r state.Rank) job.Reason {
	if r.Exit == nil {
		return job.NodeFail
	}
	return r.Exit.Reason
}

// Exit is how a rank has ended, in words.
func Exit(r state.Rank) string {
	switch e := r.Exit; {
	case e == nil:
		return "lost on " + r.Alloc.Node
	case e.Message != "":
		return e.Message
	default:
		return Died(r)
	}
}

// Died is how a rank that has ended did so, without its node's word of why.
func Died(r state.Rank) string {
	if r.Exit.Signal != 0 {
		return fmt.Sprintf("ended by signal %d on %s", r.Exit.Signal, r.Alloc.Node)
	}
	return fmt.Sprintf("exit code %d on %s", r.Exit.Code, r.Alloc.Node)
}

// EndLine is what the timeline says at an end: nothing anew if that was ordered,
// as the order was told with its reason.
func EndLine(j *state.Job, to job.State, text string) string {
	switch {
	case text == "" && to == job.Finished:
		return "finished"
	case j.Ending != nil && j.Ending.Text == text:
		return ""
	}
	return text
}

// Pull says what waiting for an image has cost, where it is worth a word.
func Pull(r state.Rank) string {
	if r.PullMS < 1000 {
		return ""
	}
	took := (time.Duration(r.PullMS) * time.Millisecond).Round(time.Second).String()
	if gpus := r.Alloc.MilliGPU(); gpus > 0 {
		return fmt.Sprintf("pulled the image in %s, in which %s GPUs of %s waited", took, words.Thousandths(gpus), r.Alloc.Node)
	}
	return fmt.Sprintf("pulled the image in %s on %s", took, r.Alloc.Node)
}

// Unlisted are those ranks of a kind that a node was given and that are not in its list, by job.
func Unlisted(n *state.Node, jobs *state.Table, list []node.RankStatus, of func(state.Rank) bool) map[job.Number]bool {
	listed := map[job.RankID]bool{}
	for _, st := range list {
		listed[st.ID] = true
	}
	out := map[job.Number]bool{}
	for _, num := range n.Jobs {
		j := jobs.Get(num)
		for i, r := range j.Attempt.Ranks {
			if r.Alloc.Node == n.Name && of(r) && !listed[j.RankID(i)] {
				out[num] = true
			}
		}
	}
	return out
}

// Knew is an attempt with the answer by which a node's disk is known at those ranks of a kind whose program has not begun. It is
// the same attempt where there are none.
func Knew(at *state.Attempt, knows sched.Time, of func(state.Rank) bool) *state.Attempt {
	for i, r := range at.Ranks {
		if of(r) && !r.Phase.Begun() && r.Phase != node.PhaseEnded {
			at = With(at, i, func(r *state.Rank) { r.Knew = knows })
		}
	}
	return at
}

// OK says whether all that an attempt did ended well.
func OK(a *state.Attempt) bool {
	for _, r := range a.Ranks {
		if r.Exit == nil || !r.Exit.OK() {
			return false
		}
	}
	return true
}

// Unsure says whether it is not known how an attempt went on: it ended after
// the backup that was restored.
func Unsure(a *state.Attempt) bool {
	for _, r := range a.Ranks {
		if r.Unsure {
			return true
		}
	}
	return false
}

// Began says whether a program of the attempt has run its first instruction, or
// may have: of a node that was lost nobody knows.
func Began(at *state.Attempt) bool {
	for _, r := range at.Ranks {
		if r.Exit == nil || r.Exit.StartedMS > 0 || r.Exit.Reason == job.NodeFail && !r.Unsent {
			return true
		}
	}
	return false
}

// Confirmed is a job's attempt without doubt of the ranks that their node has, as it was if there is none.
func Confirmed(j *state.Job, name string, has map[job.RankID]node.RankStatus) *state.Attempt {
	at := j.Attempt
	for i, r := range j.Attempt.Ranks {
		if st, ok := has[j.RankID(i)]; ok && j.Is(st) && r.Unsure && r.Alloc.Node == name {
			at = With(at, i, func(r *state.Rank) { r.Unsure = false })
		}
	}
	return at
}
