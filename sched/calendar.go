package sched

import (
	"gbatch/sched/licenses"
	"gbatch/sched/nodes"
	"gbatch/sched/predict"
	"gbatch/sched/spec"
	"gbatch/sched/timeline"
)

// calendar is what the nodes are expected to have free, as one round plans it:
// when jobs end, and what is reserved.
type calendar struct {
	policy *Policy
	now    Time
	exact  bool // the use of each GPU is kept, though none is shared

	lines    []timeline.Line   // by node.no
	lined    []*nodes.Node     // with a timeline
	halted   []*nodes.Run      // marked as being ended, to be unmarked
	ends     []timeline.Ending // see project
	freeing  *nodes.Freeing    // nil until it is needed
	licenses licenses.Book
}

// close takes the marks off, and what is planned.
func (cal *calendar) close() {
	for _, run := range cal.halted {
		run.Halting = false
	}
	for _, n := range cal.lined {
		l := &cal.lines[n.No]
		l.Made, l.Booked = false, l.Booked[:0]
	}
}

// timeline of the node, made when first asked for.
func (cal *calendar) timeline(n *nodes.Node) *timeline.Line {
	l := &cal.lines[n.No]
	if !l.Made {
		l.Made = true
		cal.project(n, l)
		cal.lined = append(cal.lined, n)
	}
	return l
}

// reline makes the node's timeline anew, after it was changed which of its jobs
// are to be ended.
func (cal *calendar) reline(n *nodes.Node) {
	l := cal.timeline(n)
	booked := l.Booked
	cal.project(n, l)
	for _, b := range booked {
		l.Book(b)
	}
}

// project makes the timeline anew from what is held on the node, without any
// reservation.
func (cal *calendar) project(n *nodes.Node, l *timeline.Line) {
	ends := cal.ends[:0]
	for _, rank := range n.Ranks {
		ends = append(ends, timeline.Ending{At: cal.expectedEnd(rank.Run), Rank: rank})
	}
	cal.ends = ends
	l.Project(n, cal.now, ends, cal.exact)
}

// earliestOn is the first time at which a rank has room on the node; Never if
// there is none.
func (cal *calendar) earliestOn(n *nodes.Node, kind *jobKind, from Time) Time {
	l := cal.timeline(n)
	i := l.Index(from)
	for at := from; at < spec.MaxTime; {
		if w := n.Closed(&kind.Request, at); w != nil {
			at = w.End
			i = l.Index(at)
			continue
		}
		_, short, ok := l.Room(n, &kind.Request, at, at+kind.predicted)
		if ok {
			return at
		}
		next := Never
		if short <= i { // nothing rules a start between two points out
			next = n.Reopens(&kind.Request, at)
		}
		if i = max(short, i) + 1; i < len(l.Points) && l.Points[i].At <= next {
			at = l.Points[i].At
		} else {
			at = next
			i = l.Index(at)
		}
	}
	return Never
}

// search goes through the nodes by when they can have room for the kind.
func (cal *calendar) search(index *nodes.Index, kind *jobKind) nodes.Search {
	if cal.freeing == nil {
		cal.freeing = nodes.NewFreeing(index, cal.now, cal.expectedEnd)
	}
	return cal.freeing.Search(kind.Shape)
}

// licensed is the first time, from the one given, at which all licences of the kind are
// to be had for its whole run time; Never if there is none.
func (cal *calendar) licensed(kind *jobKind, from Time) Time {
	return cal.licenses.Earliest(kind.Shape.Licenses, from, kind.predicted)
}

// lacking is why licences keep a kind from starting now; its code is empty where they do
// not.
func (cal *calendar) lacking(kind *jobKind) (b blocked) {
	text, never := cal.licenses.Lacking(kind.Shape.Licenses, kind.predicted)
	if b.never = text; never {
		b.code = CodeNever
	} else if text != "" {
		b.code = CodeLicenses
	}
	return b
}

func (cal *calendar) halt(jobs ...*nodes.Run) {
	for _, run := range jobs {
		run.Halting = true
		cal.halted = append(cal.halted, run)
		cal.relineAll(run)
	}
}

func (cal *calendar) unhalt(from int) {
	for _, run := range cal.halted[from:] {
		run.Halting = false
		cal.relineAll(run)
	}
	cal.halted = cal.halted[:from]
}

func (cal *calendar) relineAll(run *nodes.Run) {
	if len(run.Shape.Licenses) > 0 {
		cal.licenses.Forget()
	}
	for _, rank := range run.Held {
		cal.reline(rank.Node)
		if cal.freeing != nil {
			cal.freeing.Sooner(rank.Node)
		}
	}
}

// expectedEnd is when a running job is reckoned to give back what it holds:
// always later than now.
func (cal *calendar) expectedEnd(run *nodes.Run) Time {
	end := run.End
	if p := run.Job.Predicted; p > 0 && cal.policy.PlansByPrediction() {
		end = min(end, run.Start+predict.Lengthened(p, cal.now-run.Start))
	}
	if run.Halting {
		end = min(end, cal.now+cal.policy.HaltGrace)
	}
	if end <= cal.now { // it is over its time: the node is about to end it
		end = cal.now + max(cal.policy.HaltGrace, 1)
	}
	return end
}
