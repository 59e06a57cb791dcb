package ctld

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/control"
	"gbatch/internal/ctld/meter"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/internal/store"
	"gbatch/sched"
)

const (
	inboxSize = 4096 // requests that may wait for the loop
	batchSize = 512  // events that share one commit
)

// loop is the one owner of the controller. A turn takes what has arrived,
// applies it, schedules, commits all records at once, and only then publishes
// the view, answers, and wakes nodes and watchers.
type loop struct {
	ctl     *control.Controller
	store   *store.Store
	clock   *steadyClock
	reserve uint64 // bytes of disk below which no jobs are taken
	log     *slog.Logger
	metrics *meter.Meters

	inbox   chan request
	view    atomic.Pointer[state.View] // as of the last turn
	nodes   notifier[string]
	jobs    notifier[job.Number]
	feed    *feed
	now     sched.Time          // of the last turn; never goes back
	notSoon sched.Time          // no scheduling round before this
	full    error               // why no jobs are taken
	audited uint64              // entries of the audit log so far
	ended   chan struct{}       // closed when run has returned
	mail    func(control.Moved) // must not block
}

// request is an event to apply, or a question that needs the controller itself.
type request struct {
	event control.Event
	ask   func(*control.Controller, sched.Time)

	records []state.Record // to be stored too, unless the event is refused
	note    *note          // who asks, for the audit log; nil: no entry
	denied  string         // there is nothing to do but the entry, with this result

	reply chan reply // buffered: the loop never waits for a client
}

type reply struct {
	answer any
	err    error
}

var errBusy = &api.Error{Status: 503, Code: api.CodeUnavailable, Message: "the controller has too much to do at the moment",
	Hint: "try again in a few seconds"}

var errStopped = &api.Error{Status: 503, Code: api.CodeUnavailable, Message: "the controller is being stopped: whether this was done is not known",
	Hint: "look when it is back"}

// do has an event applied and returns its answer when its records are durable.
func (l *loop) do(ctx context.Context, ev control.Event) (any, error) {
	return l.send(ctx, request{event: ev, note: noteOf(ctx), reply: make(chan reply, 1)})
}

// ask runs f in the loop, between turns. It must be quick and change nothing.
// When ask has returned, with an error too, f does not run any more.
func (l *loop) ask(ctx context.Context, f func(*control.Controller, sched.Time)) error {
	var mu sync.Mutex
	gone := false
	_, err := l.send(ctx, request{reply: make(chan reply, 1), ask: func(c *control.Controller, now sched.Time) {
		mu.Lock()
		defer mu.Unlock()
		if !gone {
			f(c, now)
		}
	}})
	mu.Lock()
	defer mu.Unlock()
	gone = true
	return err
}

// settle is send for what somebody else must learn of if it happens: it waits
// for the outcome, also when the client has gone.
func (l *loop) settle(ctx context.Context, ev control.Event, n *note, records ...state.Record) (any, error) {
	return l.send(context.WithoutCancel(ctx), request{event: ev, records: records, note: n, reply: make(chan reply, 1)})
}

func (l *loop) send(ctx context.Context, r request) (any, error) {
	select {
	case l.inbox <- r:
	default:
		return nil, errBusy
	}
	select {
	case a := <-r.reply:
		return a.answer, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-l.ended:
		return nil, errStopped
	}
}

// View is the controller as of the last turn.
func (l *loop) View() *state.View { return l.view.Load() }

// commit stores what is not the controller's (tokens, keys) with its entry.
func (l *loop) commit(ctx context.Context, object, change string, records ...state.Record) error {
	_, err := l.settle(ctx, nil, noteOf(ctx).about(object, change), records...)
	return err
}

// change has an event applied, with records to go with it, and waits for the
// outcome, also when the client has gone. The audit log says who did it.
func (l *loop) change(ctx context.Context, ev control.Event, records ...state.Record) error {
	answer, err := l.settle(ctx, ev, noteOf(ctx), records...)
	if r, ok := answer.(*state.Refusal); ok {
		return r
	}
	return err
}

// denied notes a request that was not let in. It does not wait: the caller is
// told in any case.
func (l *loop) denied(e api.AuditEntry, why string) {
	select {
	case l.inbox <- request{note: &note{e}, denied: "denied: " + why, reply: make(chan reply, 1)}:
	default: // the loop has more important things to do
	}
}

// run is the loop goroutine. It returns when ctx is done, or with the error
// that makes it impossible to keep the promise that answers are durable; the
// process must then end, and a restart continues from what is stored.
func (l *loop) run(ctx context.Context) error {
	defer close(l.ended)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		var batch []request
		select {
		case <-ctx.Done():
			return nil
		case r := <-l.inbox:
			batch = append(batch, r)
		case <-timer.C:
		}
	drain:
		for len(batch) < batchSize {
			select {
			case r := <-l.inbox:
				batch = append(batch, r)
			default:
				break drain
			}
		}
		if err := l.turn(batch); err != nil {
			return err
		}
		timer.Reset(l.untilNext())
	}
}

// turn is one pass. The order in it is the durability promise.
func (l *loop) turn(batch []request) error {
	began := time.Now()
	l.now = max(l.now, l.clock.now())
	stop := l.checkDisk()
	var eff control.Effects
	replies := make([]reply, len(batch))
	for i, r := range batch {
		replies[i] = l.apply(r, stop, &eff)
	}
	if stop == nil {
		l.pass(&eff)
	}
	syncing := time.Now()
	if err := l.store.Commit(eff.Records); err != nil {
		for _, r := range batch {
			r.reply <- reply{err: &api.Error{Status: 503, Code: api.CodeUnavailable, Message: "the controller could not store this: " + err.Error(),
				Hint: "nothing was recorded; try again later"}}
		}
		return fmt.Errorf("commit: %w", err)
	}
	if len(eff.Records) > 0 {
		l.metrics.Commit(time.Since(began), time.Since(syncing), len(eff.Records))
	}
	l.metrics.Prepulled(eff.Prepulled)
	before, view := l.view.Load(), l.ctl.View(l.now)
	l.view.Store(view)
	l.feed.publish(before, view, &eff)
	l.metrics.Changes(before, view, eff.Changed)
	for i, r := range batch {
		if r.ask != nil {
			r.ask(l.ctl, l.now)
		}
		r.reply <- replies[i]
	}
	for _, n := range eff.Wake {
		l.nodes.notify(n)
	}
	for _, n := range eff.Changed {
		l.jobs.notify(n)
	}
	for _, m := range eff.Moved {
		l.mail(m)
	}
	return nil
}

// apply takes one request into the turn's effects.
func (l *loop) apply(r request, stop error, eff *control.Effects) reply {
	if r.ask != nil {
		return reply{}
	}
	_, submit := r.event.(control.Submit)
	if stop != nil || (submit && l.full != nil) {
		return reply{err: storageFull(errors.Join(stop, l.full))}
	}
	result := cmp.Or(r.denied, "ok")
	var answer any
	if r.event != nil {
		before := l.view.Load()
		e := l.ctl.Apply(l.now, r.event)
		eff.Add(e)
		answer = e.Answer
		if submit {
			l.metrics.Submission(answer)
		}
		if r.note != nil {
			result = r.note.tell(before, r.event, answer)
		}
	}
	if _, refused := answer.(*state.Refusal); !refused {
		eff.Records = append(eff.Records, r.records...)
	}
	if r.note != nil && result != "" {
		eff.Records = append(eff.Records, l.record(r.note, result))
	}
	return reply{answer: answer}
}

// pass lets time pass and decides who starts.
func (l *loop) pass(eff *control.Effects) {
	if t := l.ctl.NextTick(l.now); t > 0 && t <= l.now {
		eff.Add(l.ctl.Apply(l.now, control.Tick{}))
	}
	if l.ctl.Due() && l.now >= l.notSoon {
		began := time.Now()
		eff.Add(l.ctl.Schedule(l.now))
		took := time.Since(began)
		// At most half of the time goes into scheduling.
		l.notSoon = l.now + sched.Time(took.Milliseconds())
		plan, _ := l.ctl.Plan()
		l.metrics.Round(took, plan, eff.Missed)
	}
}

// untilNext is how long the loop may sleep if nothing arrives.
func (l *loop) untilNext() time.Duration {
	next := l.now + 1000
	if t := l.ctl.NextTick(l.now); t > 0 {
		next = min(next, t)
	}
	if l.ctl.Due() {
		next = min(next, l.notSoon)
	}
	return max(time.Duration(next-l.clock.now())*time.Millisecond, 0)
}

// load is how much the loop has to do, and what room its store has.
type load struct {
	inbox        int    // requests that wait
	free, stored uint64 // bytes of the disk
	freeKnown    bool
}

func (l *loop) load() load {
	free, err := l.store.Free()
	return load{inbox: len(l.inbox), free: free, freeKnown: err == nil, stored: l.store.Metrics().DiskSpaceUsage()}
}

// checkDisk looks at the room that is left. Below the reserve no jobs are
// taken; below a quarter of it nothing at all is (the error says so), so that
// the controller's picture never runs ahead of what is stored.
func (l *loop) checkDisk() error {
	free, err := l.store.Free()
	switch {
	case err != nil:
		return err
	case free < l.reserve/4:
		return fmt.Errorf("%d MiB are left on the disk of the controller", free>>20)
	case free < l.reserve:
		if l.full == nil {
			l.log.Error("disk nearly full: no jobs are taken until there is room", "free_mib", free>>20, "reserve_mib", l.reserve>>20)
		}
		l.full = fmt.Errorf("%d MiB are left on the disk of the controller, %d must stay free", free>>20, l.reserve>>20)
	default:
		if l.full != nil {
			l.log.Info("disk has room again: jobs are taken", "free_mib", free>>20)
		}
		l.full = nil
	}
	return nil
}

func storageFull(err error) error {
	return &api.Error{Status: 507, Code: api.CodeStorageFull, Message: "the controller's disk is full: " + err.Error(),
		Hint: "nothing was recorded; tell your operator, and try again when there is room"}
}
