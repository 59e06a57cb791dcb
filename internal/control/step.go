package control

import (
	"gbatch/internal/control/effects"
	"gbatch/internal/control/idle"
	"gbatch/internal/control/ledger"
	"gbatch/internal/control/templates"
	"gbatch/internal/state"
	"gbatch/sched"
)

// parts are what the controller is made of. Each has its own invariants and a
// check of them, and holds those below it that it may touch; none knows one that
// is below it in this list.
type parts struct {
	cfg       *Config         // the rules in force; only Reconfigure replaces them
	depends   *depends        // jobs that wait for others
	arrays    *arrays         // which tasks of arrays are jobs, and what arrays come to
	attempts  *attempts       // jobs that hold something: their starts and ends
	nodes     *nodes          // the nodes and what is wanted of them
	jobs      *jobs           // the table; nothing else writes to it
	templates *templates.Set  // jobs that make jobs, and when
	limits    *limits         // run times that are kept here
	warnings  *warnings       // of how much of them is used
	idle      idle.Jobs       // jobs that want to end when their GPUs do nothing
	queue     *queue          // the scheduler and its last plan
	ledger    *ledger.Ledger  // the accounts
	out       *effects.Output // what the step asks of the owner
	intern    *state.Interner
}

// step is one event or one round at work. A line of its handler names the part
// that it touches.
type step struct {
	parts
	now sched.Time
}

// begin is the beginning of every step. There is one at a time.
func (c *Controller) begin(now sched.Time) *step {
	c.out.Begin(now, c.cfg.NoRecords)
	c.step = step{c.parts, now}
	c.nodes.by = ""
	return &c.step
}

// finish is the end of every step: all follows that follows from it.
func (s *step) finish() effects.Set {
	s.depends.follow()
	s.ledger.Record()
	return s.out.Set
}

func must(err error) {
	if err != nil {
		panic(err) // values of our own types always encode
	}
}

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
func Apply[A any](c *Controller, now sched.Time, ev Event[A]) (A, *state.Refusal, effects.Set) {
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
