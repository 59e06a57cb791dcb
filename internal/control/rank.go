package control

import (
	"cmp"
	"fmt"
	"slices"

	"gbatch/internal/control/ranks"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
)

// reports takes a node's words on its ranks. Of two in one place the one that was there first
// comes first, in whatever order they are said.
func (a *attempts) reports(name string, list []node.RankStatus) {
	for later := []node.RankStatus(nil); len(list) > 0; list, later = later, nil {
		for _, st := range list {
			if j := a.jobs.get(st.ID.Job); j != nil && j.State.Active() && !j.Holds() {
				later = append(later, st)
			} else {
				a.report(name, st)
			}
		}
		if len(later) == len(list) {
			for _, st := range later {
				a.report(name, st)
			}
			return
		}
	}
}

// report takes a node's word on one rank. Words on attempts that are over
// change nothing: the attempt number is the fence. Nor do words on another job
// that had the number, before the records went back to an older state.
func (a *attempts) report(name string, st node.RankStatus) {
	j := a.jobs.get(st.ID.Job)
	if j == nil || !j.Is(st) || !j.State.Active() || j.Attempt.Attempt != st.ID.Attempt || int(st.ID.Task) != j.Index ||
		int(st.ID.Rank) >= len(j.Attempt.Ranks) || !st.Phase.Known() {
		return
	}
	i := int(st.ID.Rank)
	r := j.Attempt.Ranks[i]
	if r.Alloc.Node != name || (st.Phase == node.PhaseEnded && st.Exit == nil) {
		return
	}
	if !j.Holds() && st.Phase != node.PhaseEnded {
		return // it waits there; or the node is to say that the one before it has ended
	}
	if j.Ending != nil && j.Ending.Ahead && st.Phase.After(node.PhaseAccepted) && st.Phase != node.PhaseEnded {
		j = a.jobs.change(j, "had begun before it could be taken back", func(j *state.Job) { j.Ending = nil })
	}
	if st.Resize != nil && st.Phase == node.PhaseRunning {
		a.resized(j, i, st)
		j = a.jobs.get(st.ID.Job)
	}
	if st.Phase != node.PhaseEnded {
		a.acknowledged(j, i, st)
		j = a.jobs.get(st.ID.Job)
	}
	r = j.Attempt.Ranks[i]
	switch {
	case st.Phase.After(r.Phase):
	case st.Phase == r.Phase && st.Image != "" && r.Image == "" && st.Phase != node.PhaseEnded:
	case st.Phase == r.Phase && st.Phase != node.PhaseEnded && (st.Progress != r.Progress || st.Done.String() != r.Done.String()):
		a.progress(j, i, st)
		return
	default:
		return
	}
	word := ranks.Word{Now: a.out.Now, Together: j.Attempt.Given > 0 || a.given.Next(st.ID.Job) > 0, Before: a.nodes.before, Booted: a.nodes.booted}
	word.Bound(j.Attempt, &r, st)
	r.Phase, r.Progress = st.Phase, st.Progress
	r.Cores, r.Image, r.Done = cmp.Or(st.Cores, r.Cores), cmp.Or(st.Image, r.Image), cmp.Or(st.Done, r.Done)
	if st.PullMS > 0 {
		r.PullMS = st.PullMS
	}
	if len(st.Ports) > 0 {
		r.Ports = st.Ports
	}
	a.advance(j, i, r)
}

// progress changes only what is shown of what the node and the program do: it
// is not recorded, since the node says it again.
func (a *attempts) progress(old *state.Job, i int, st node.RankStatus) {
	a.jobs.show(old, func(j *state.Job) {
		j.Attempt = ranks.With(old.Attempt, i, func(r *state.Rank) {
			r.Progress, r.Done = st.Progress, cmp.Or(st.Done, r.Done)
		})
	})
}

// advance moves a job to the state that its ranks' phases say.
func (a *attempts) advance(j *state.Job, i int, r state.Rank) {
	to := j.State
	at := ranks.With(j.Attempt, i, func(p *state.Rank) { *p = r })
	least, running := ranks.Least(at)
	back := r.Phase == node.PhaseEnded && j.Ending != nil && j.Ending.Ahead && !ranks.Began(at)
	switch {
	case !r.Phase.After(node.PhaseAccepted), back: // it is nowhere further
	case running && (to == job.Assigned || to == job.Starting):
		to = job.Running
	case to == job.Assigned:
		to = job.Starting
	}
	pinned := at.Image == "" && r.Image != ""
	if pinned {
		at.Image = r.Image
	}
	line := ""
	switch {
	case r.Phase == node.PhaseStarting:
		line = fmt.Sprintf("image is there, container starts on %s", r.Alloc.Node)
	case r.Phase == node.PhasePulling && j.Attempt.Ranks[i].Phase != r.Phase:
		line = fmt.Sprintf("%s pulls the image", r.Alloc.Node)
	case r.Phase == node.PhaseReady:
		line = fmt.Sprintf("rank %d is ready on %s", i, r.Alloc.Node)
	case back:
		line = fmt.Sprintf("%s had not begun it", r.Alloc.Node)
	case r.Phase == node.PhaseEnded && j.Ending != nil && r.Exit != nil && r.Exit.Message == j.Ending.Text:
		line = ranks.Died(r) // why was said with the order, which the node repeats
	case r.Phase == node.PhaseEnded:
		line = ranks.Exit(r)
	}
	if j.Attempt.Ranks[i].PullMS == 0 {
		line = joinText(ranks.Pull(r), line)
	}
	before := j
	j = a.jobs.change(j, line, func(j *state.Job) {
		j.Attempt = at
		if to == job.Running && j.State != job.Running && !j.State.Final() && j.State != job.MustHalt && j.State != job.Halting {
			j.Started = max(ranks.Started(a.out.Now, r), at.Start) // whatever the node says
			j.First = cmp.Or(j.First, j.Started)
		}
		j.State = to
	})
	if first := j.First > 0 && j.First == j.Started && to == job.Running; first && before.State != to {
		a.jobs.watchLimit(j)
	}
	if pinned && len(at.Ranks) > 1 {
		a.nodes.wakeAll(j) // the other ranks waited for it
	}
	a.letBegin(before, j)
	if r.Phase != node.PhaseEnded {
		return
	}
	a.nodes.leave(r.Alloc.Node, j)
	a.nodes.countTrouble(r, a.jobs.suspect(j))
	if least == node.PhaseEnded {
		a.close(j)
	} else if !a.masterDone(j, i, r) && j.Ending == nil && (r.Exit == nil || !r.Exit.OK()) {
		// One rank failed: the others of the gang have no use.
		a.stop(j, state.Ending{Reason: ranks.Reason(r), Then: job.Failed, Fault: true, Text: fmt.Sprintf("rank %d %s", i, ranks.Exit(r))})
	}
}

// kept takes in what a node said of its ranks while there was no room to record it.
func (a *attempts) kept(name string) {
	n := a.nodes.get(name)
	if n == nil || n.Kept == nil {
		return
	}
	v := *n
	a.nodes.before, a.nodes.booted, v.Said, v.Kept = n.Said, 0, n.Heard, nil
	a.nodes.set(v)
	a.reports(name, n.Kept)
}

// acknowledged takes in what a node says of signals that it has sent to a rank.
func (a *attempts) acknowledged(j *state.Job, i int, st node.RankStatus) {
	r := j.Attempt.Ranks[i]
	if st.Signalled <= r.Signalled && (!st.Stopping || r.Stopping) {
		return
	}
	at := ranks.With(j.Attempt, i, func(r *state.Rank) {
		r.Signalled = max(r.Signalled, min(st.Signalled, j.Attempt.SentSeq))
		r.Stopping = r.Stopping || st.Stopping
	})
	line := ""
	for _, s := range j.Attempt.Sent {
		if s.Seq > r.Signalled && s.Seq <= st.Signalled {
			line = joinText(line, fmt.Sprintf("%s was sent to rank %d on %s", s.Name, i, r.Alloc.Node))
		}
	}
	at.Sent = slices.DeleteFunc(slices.Clone(at.Sent), func(s state.Sent) bool {
		return !slices.ContainsFunc(at.Ranks, func(r state.Rank) bool { return r.Phase != node.PhaseEnded && r.Signalled < s.Seq })
	})
	j = a.jobs.change(j, line, func(j *state.Job) { j.Attempt = at })
	if j.State == job.MustHalt {
		a.haltSent(j)
	}
}

// letBegin wakes the nodes when more ranks of a gang may begin than before.
func (a *attempts) letBegin(before, j *state.Job) {
	if len(j.Attempt.Ranks) > 1 && j.Begun() > before.Begun() {
		a.nodes.wakeAll(j)
	}
}

// masterDone ends the other ranks of a gang that is over when the first are. It says whether
// it did.
func (a *attempts) masterDone(j *state.Job, i int, r state.Rank) bool {
	first := min(max(1, j.Request.StopRanks), len(j.Attempt.Ranks))
	if i >= first || j.Request.StopWhen != job.MasterDone || j.Ending != nil {
		return false
	}
	for _, r := range j.Attempt.Ranks[:first] {
		if r.Exit == nil || !r.Exit.OK() {
			return false
		}
	}
	text := fmt.Sprintf("rank 0 is done on %s: the others are ended", r.Alloc.Node)
	if first > 1 {
		text = fmt.Sprintf("the first %d ranks are done: the others are ended", first)
	}
	a.stop(j, state.Ending{Then: job.Finished, Text: text})
	return true
}
