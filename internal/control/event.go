package control

import (
	"gbatch/internal/state"
	"gbatch/sched"
)

// Event is something that happened; A is the answer to it. Each has a file of
// its own, event_*.go, with its answer, its handler and its audit line.
type Event[A any] interface {
	// apply is the handler. With a refusal nothing was changed, and the answer
	// means nothing.
	apply(*step) (A, *state.Refusal)
	audit(A) Audit
}

// none is the answer of events that have none.
type none struct{}

// Apply takes one event.
func Apply[A any](c *Controller, now sched.Time, ev Event[A]) (A, *state.Refusal, Effects) {
	s := c.begin(now)
	answer, refusal := ev.apply(s)
	return answer, refusal, s.finish()
}

// Audit is what an event changed, in words for the audit log.
type Audit struct {
	Object, Change string
	Refusal        *state.Refusal // why it was not done, nil if it was
	Nothing        bool           // it changed nothing worth an entry
}

// AuditOf is the audit line of an event that was applied.
func AuditOf[A any](ev Event[A], answer A, refusal *state.Refusal) Audit {
	a := ev.audit(answer)
	if refusal != nil {
		a.Refusal = refusal
	}
	return a
}
