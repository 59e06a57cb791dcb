// Package fit says when a node is fit for jobs: how its silence counts, and jobs that
// fail on it by no fault of their own. It is pure.
package fit

import (
	"fmt"
	"slices"

	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// A node on which jobs fail by no fault of their own would take one after the
// other, since it is always the one that is free. After failures of several
// jobs in a row it gets no new ones for a while, which doubles. What a user
// does wrong never counts: those failures have reasons of another class.

const (
	troubleJobs  = 3 // different jobs in a row
	firstPenalty = sched.Minute
	mostPenalty  = sched.Hour
)

// Failed is what speaks against a node after one more failure there, which counts
// for the job n; t is what did before, nil if nothing.
func Failed(t *state.Trouble, now sched.Time, n job.Number, text string) *state.Trouble {
	out := state.Trouble{}
	if t != nil {
		out = *t
	}
	if !slices.Contains(out.Jobs, n) {
		out.Jobs = append(slices.Clip(out.Jobs), n)
		out.Jobs = out.Jobs[max(len(out.Jobs)-troubleJobs, 0):]
	} else if t.Until > 0 || t.Times == 0 {
		return t
	}
	if out.Until > 0 || len(out.Jobs) < troubleJobs {
		return &out
	}
	span := min(firstPenalty<<min(out.Times, 10), mostPenalty)
	out.Times++
	out.Until = now + span
	out.Why = fmt.Sprintf("%d jobs in a row failed by no fault of their own, the last with: %s; no new jobs for %s", len(out.Jobs), text, job.Duration(span/sched.Second))
	return &out
}

// Patience is for how long a node may be silent.
type Patience struct {
	Suspect sched.Time // for this long it gets no new jobs
	Lost    sched.Time // for this long its ranks are given up
}

// Silent is what a node's silence makes of it. It is heard again before it is
// neither: time alone makes nothing better.
func (p Patience) Silent(now sched.Time, n *state.Node) (suspect, lost bool) {
	silent := now - n.LastSeen
	return n.Suspect || silent >= p.Suspect, n.Lost || silent >= p.Lost
}

// Lease is how long a node may go on without contact: shorter than the controller's own patience with
// it, so that a rank has ended on a node that is cut off before it can be started anywhere else.
func (p Patience) Lease() sched.Time { return p.Lost * 8 / 10 }

// Over is by when what ran on a node that is lost has ended: its lease came with its last contact.
func (p Patience) Over(now sched.Time, n *state.Node) sched.Time { return min(now, n.Heard+p.Lease()) }

// Next is when silence makes something else of a node; 0: nothing more does.
func (p Patience) Next(n *state.Node) sched.Time {
	switch {
	case !n.Suspect:
		return n.LastSeen + p.Suspect
	case !n.Lost:
		return n.LastSeen + p.Lost
	}
	return 0
}

// Fresh says whether an answer was given as lately as the last one of a node that is not suspect. An order waits until it is
// recorded with its rank that the node's disk knows of a fresh one, and that is recorded anew until the rank begins: so an image
// of that disk which is put back later is found to be an older one, unless it was made shortly before the order came. See Older.
func (p Patience) Fresh(now, answer sched.Time) bool { return now-answer <= p.Suspect }

// diskBehind is how far a node's disk may be behind what the node has said: it notes an answer within a second, and its
// kernel writes that within half a minute.
const diskBehind = sched.Minute

// Older says whether a node that was started again, and whose disk tells when it was last answered, may have lost what it knew
// of a rank that it was given: its disk is of an older state than that by which it has spoken. That a rank which it
// does not list did not begin there is then not to be told from that it did and ended, and nothing of it was heard. Where
// the disk is as new it did not begin.
func Older(n *state.Node, r state.Rank, knows sched.Time) bool {
	return knows+diskBehind < max(n.Knows, r.Knew)
}

// OlderText is what is said of such a rank.
func OlderText(n *state.Node) string {
	return fmt.Sprintf("node %s was started with an older state of its disk, which does not know it: whether its program ran is not known", n.Name)
}

// NotTheNode is what a machine is told that says it is a node and is not believed.
func NotTheNode(name, why string) string {
	return fmt.Sprintf("this is not the machine that is node %s: %s", name, why)
}

// RunsOn is why a machine is not believed which does not know a job of n that runs on without contact: n may run it still, and
// is not given up however long it is silent.
func RunsOn(now sched.Time, n *state.Node) string {
	return fmt.Sprintf("that one was heard %d s ago and may run a job on without contact, of which this one knows nothing; if nothing runs there any more, as this is it with an older disk or takes its place, an operator gives it up by `gadm forget --give-up-jobs %s`", (now-n.LastSeen)/sched.Second, n.Name)
}

// OtherMachine is why a machine that says it is n, in another boot than the one that was heard
// last, is not believed; empty: it is n, restarted. A machine that runs is heard well
// within half of the time after which it is suspect. While it was silent for less, there may be two
// with one key and one state directory; and where forgets says that it does not know ranks whose
// programs had begun and may go on.
func (p Patience) OtherMachine(now sched.Time, n *state.Node, boot string, forgets bool) string {
	if n.Boot == "" || boot == "" || n.Boot == boot {
		return ""
	}
	silent := (now - n.LastSeen) / sched.Second
	switch {
	case forgets:
		return fmt.Sprintf("that one was heard %d s ago and runs jobs of which this one knows nothing; it is given up when it was silent for %d s, or by `gadm forget`", silent, p.Lost/sched.Second)
	case now-n.LastSeen < p.Suspect/2:
		return fmt.Sprintf("that one was heard %d s ago; if this is the same one, restarted, it is let in within %d s", silent, p.Suspect/2/sched.Second)
	}
	return ""
}
