package sched

import (
	"cmp"
	"fmt"
	"slices"

	"gbatch/sched/nodes"
	"gbatch/sched/words"
)

// waitReason is why the jobs of a class do not start, in numbers; the words are
// made when somebody asks.
type waitReason struct {
	code  Code
	head  JobID    // the first job of the class that does not start
	why   *blocked // nil: it is another job, or a limit
	limit limitHit
}

// blocked is why there is no room for jobs of a kind.
type blocked struct {
	code  Code
	never string // of CodeNever, CodePartition and CodeLicenses, in words
	nodes.Counts
}

// maxExact bounds for how many kinds of a round the reason is worked out node
// by node. Those after them, which have a low priority, take over the reason of
// a smaller request that failed.
const maxExact = 256

// whyBlocked is the first reason for which find fails, by what was free when
// it did.
func (r *round) whyBlocked(kind *jobKind) *blocked {
	if r.exact++; r.exact > maxExact {
		for _, f := range r.failed[kind.Shape.Bounds] {
			if f.why != nil && f.covers(kind) && kind.matching(r.s.index) >= kind.Shape.Ranks() {
				return f.why
			}
		}
	}
	why := r.exactlyWhy(kind)
	for i, f := range r.failed[kind.Shape.Bounds] {
		if f.kind == kind {
			r.failed[kind.Shape.Bounds][i].why = why
		}
	}
	return why
}

func (r *round) exactlyWhy(kind *jobKind) *blocked {
	kind = kind.leastLimited()
	b, _ := r.bestWay(kind)
	if b.code != CodeNever && b.code != CodePartition {
		if lack := r.calendar.lacking(kind); lack.code != "" {
			return &lack
		}
	}
	return &b
}

// Ref says to a Plan which jobs a waiting one is like. It is a value that may be
// kept and read by anyone until the job leaves the queue, or the policy or the
// windows change.
type Ref struct {
	Since Time   // eligible since
	alike *alike // nil: nobody
}

// alike is what plans know the jobs of a class by. They share one, which never changes.
type alike struct {
	class, kind uint64
	shape       *nodes.Shape
}

// Ref of a waiting job, and whether it waits.
func (s *State) Ref(id JobID) (Ref, bool) {
	e := s.waiting[id]
	if e == nil {
		return Ref{}, false
	}
	return Ref{Since: e.since, alike: e.class.asAlike()}, true
}

func (r Ref) of() alike {
	if r.alike == nil {
		return alike{}
	}
	return *r.alike
}

// asAlike is another one when the class has come to another kind.
func (c *class) asAlike() *alike {
	if a := c.alike; a == nil || a.class != c.id || a.kind != c.kind.id {
		c.alike = &alike{c.id, c.kind.id, c.shape}
	}
	return c.alike
}

// ReasonFor is why a waiting job does not start, as the plan has it. It costs the
// same for every job; a plan never changes and may be read by anyone.
func (p *Plan) ReasonFor(id JobID, ref Ref) Reason {
	if reject := p.rejectOf(id); reject != nil {
		return reject.Reason
	}
	if ref.Since > p.now {
		return Reason{Code: CodeBeginTime, Text: "waits for its begin time", At: ref.Since}
	}
	why, ok := p.reasonOf(ref)
	if !ok {
		return Reason{Code: CodeNotYetEvaluated, Text: "no round has looked at it yet"}
	}
	out := Reason{Code: why.code, Text: why.words(ref.of().shape)}
	for _, res := range p.Reservations {
		if res.Job == id {
			out.At = res.At
		}
	}
	return out
}

// CodeFor is the code of ReasonFor, for those who count: it makes no words.
func (p *Plan) CodeFor(id JobID, ref Ref) Code {
	if reject := p.rejectOf(id); reject != nil {
		return reject.Reason.Code
	}
	if ref.Since > p.now {
		return CodeBeginTime
	}
	if why, ok := p.reasonOf(ref); ok {
		return why.code
	}
	return CodeNotYetEvaluated
}

func (p *Plan) rejectOf(id JobID) *Reject {
	if i, ok := slices.BinarySearchFunc(p.Rejects, id, func(r Reject, id JobID) int { return cmp.Compare(r.Job, id) }); ok {
		return &p.Rejects[i]
	}
	return nil
}

// reasonOf is that of the job's class, else of its kind, else of strict order.
func (p *Plan) reasonOf(ref Ref) (waitReason, bool) {
	of := ref.of()
	why, ok := p.classReasons[of.class]
	if !ok {
		why, ok = p.kindReasons[of.kind]
	}
	if !ok && p.first != 0 {
		why, ok = waitReason{code: CodePriority, head: p.first}, true
	}
	return why, ok
}

func (why waitReason) words(shape *nodes.Shape) string {
	switch why.code {
	case CodeLimit:
		return why.limit.text()
	case CodePriority:
		if why.why == nil || why.why.Room == 0 {
			return fmt.Sprintf("job %d goes first", why.head)
		}
		return fmt.Sprintf("what is free for %s is planned for jobs before it", shape.Text())
	case CodeReservation:
		return fmt.Sprintf("needs %s: reservation %q keeps it off nodes with room", shape.Text(), why.why.Window)
	case CodeNever, CodePartition, CodeLicenses:
		if why.why == nil {
			return why.limit.text()
		}
		return why.why.never
	}
	return why.why.Words(shape)
}

func (l limitHit) text() string {
	who := [...]string{"user", "project", "qos", "user", "bucket"}[l.kind] + " " + l.name
	if l.of != "" {
		who += " in qos " + l.of
	}
	switch {
	case l.never && l.what == "GPUs":
		return fmt.Sprintf("%s may have %s at once, and the job asks for %s", who, words.GPUs(l.max), words.Thousandths(l.ask))
	case l.never:
		return fmt.Sprintf("%s may have %d GPU-minutes at once, and the job asks for %d, by its GPUs and time limit", who, l.max/milliMinute, l.ask/milliMinute)
	}
	switch l.what {
	case "GPUs":
		return fmt.Sprintf("%s has %s of %s and asks for %s more", who, words.Thousandths(l.used), words.GPUs(l.max), words.Thousandths(l.ask))
	case "GPU-minutes":
		return fmt.Sprintf("%s has %d of %d GPU-minutes and asks for %d more", who, l.used/milliMinute, l.max/milliMinute, l.ask/milliMinute)
	case "budget", "month's budget":
		return fmt.Sprintf("%s has used %d of its %s of %d GPU-minutes", who, l.used, l.what, l.max)
	}
	return fmt.Sprintf("%s has %d of %d %s", who, l.used, l.max, l.what)
}

func deadlineText(e *entry, now Time) string {
	if e.rare.notAfter > 0 && e.rare.notAfter <= now {
		return "the time by which it must have started has passed"
	}
	return "waited longer than " + words.Plural(int(e.rare.maxQueued/Minute), "minute")
}
