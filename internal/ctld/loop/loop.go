package loop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/control"
	"gbatch/internal/control/effects"
	"gbatch/internal/control/standby"
	"gbatch/internal/ctld/meter"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/internal/store"
	"gbatch/sched"
)

// Config is what a loop works with.
type Config struct {
	Controller *control.Controller // loaded; the loop owns it from here on
	Store      *store.Store        // the loop alone writes
	Clock      *Clock
	Meters     *meter.Meters
	Reserve    func() uint64 // bytes of disk below which no jobs are taken
	Confirm    func() error  // asks whether this controller still leads; nil: it is the only one
	Published  func()        // is told after each turn that the view has all that is stored; nil: nobody
	Log        *slog.Logger
}

// New is a loop whose first view is of now.
func New(c Config, now sched.Time) (*Loop, error) {
	l := &Loop{
		ctl: c.Controller, store: c.Store, clock: c.Clock, reserve: c.Reserve, confirm: c.Confirm, log: c.Log, meters: c.Meters,
		published: c.Published, inbox: newInbox(), Feed: newFeed(c.Store.Epoch()), ended: make(chan struct{}), now: now,
	}
	l.view.Store(l.ctl.View(now))
	return l, l.audit.open(l.store)
}

// Loop is the one owner of the controller. A turn takes what has arrived,
// applies it, schedules, commits all records at once, and only then publishes
// the view, answers, and wakes nodes and watchers.
type Loop struct {
	ctl     *control.Controller
	store   *store.Store
	clock   *Clock
	reserve func() uint64 // bytes of disk below which no jobs are taken
	confirm func() error  // asks whether this controller still leads; nil: it is the only one
	log     *slog.Logger

	published func() // see Config
	meters    *meter.Meters

	inbox   inbox
	view    atomic.Pointer[state.View] // as of the last turn
	now     sched.Time                 // of the last turn; never goes back
	notSoon sched.Time                 // no scheduling round before this
	full    error                      // why no jobs are taken
	halted  bool                       // nothing at all is stored
	audit   audit                      // what it has so far
	refused refusals                   // that are not in it yet
	ended   chan struct{}              // closed when Run has returned

	told told // when nodes were sent desired sets

	Nodes Notifier[string]     // of nodes that have something to do
	Jobs  Notifier[job.Number] // of jobs that have changed
	Feed  *feed                // what has changed lately
	Hooks Hooks                // must not block, set before Run; nil: nobody is told
}

// Hooks tells others of changes of jobs.
type Hooks interface {
	Records(moved []effects.Moved) []state.Record // to be stored with the changes
	Take(stored []state.Record)                   // they are
}

// request is an event to apply, or a question that needs the controller itself.
type request struct {
	apply  func(*control.Controller, sched.Time) applied
	submit bool // it is a new job: not while the disk is nearly full
	frugal bool // nothing of it is stored: it is applied also when the disk is full
	ask    func(*control.Controller, sched.Time)

	records []state.Record // to be stored too, unless the event is refused
	note    *Note          // who asks, for the audit log; nil: no entry
	node    string         // see Report; empty: nobody is told by the answer

	cost  int        // of the loop's time
	reply chan error // buffered: the loop never waits for a client
}

// applied is what came of an event. Its type and that of its answer are known to
// who sent it alone.
type applied struct {
	effects effects.Set
	refusal *state.Refusal
	audit   func() control.Audit
}

var ErrBusy = api.Errorf(api.CodeUnavailable, "the controller has too much to do at the moment").WithHint("try again in a few seconds")

var errStopped = api.Errorf(api.CodeUnavailable, "the controller is being stopped: whether this was done is not known").
	WithHint("look when it is back")

// Do has an event applied and returns its answer when its records are durable.
// A refusal is an error.
func Do[A any](ctx context.Context, l *Loop, ev control.Event[A]) (A, error) {
	return sendEvent(ctx, l, ev, request{note: NoteOf(ctx)})
}

// Report is Do for a node's word that is answered with what the node shall have as of
// the same turn: its open poll need not be woken to say that again. Who then does not
// send that answer has to notify the node in Nodes.
func Report[A any](ctx context.Context, l *Loop, node string, ev control.Event[A]) (A, error) {
	return sendEvent(ctx, l, ev, request{note: NoteOf(ctx), node: node})
}

// DoToEndAs is DoToEnd with a note of the caller's own.
func DoToEndAs[A any](ctx context.Context, l *Loop, ev control.Event[A], n *Note, records ...state.Record) error {
	_, err := sendEvent(context.WithoutCancel(ctx), l, ev, request{note: n, records: records})
	return err
}

// DoToEnd is Do with further records, for what somebody else must learn of if it
// happens: it waits for the answer also when the client has gone.
func DoToEnd[A any](ctx context.Context, l *Loop, ev control.Event[A], records ...state.Record) error {
	return DoToEndAs(ctx, l, ev, NoteOf(ctx), records...)
}

func sendEvent[A any](ctx context.Context, l *Loop, ev control.Event[A], r request) (A, error) {
	return begin(ctx, l, ev, r)()
}

// Begin is Do, and answers later: events of one user that were begun one after the
// other are applied in that order, with as few commits as the turns allow.
func Begin[A any](ctx context.Context, l *Loop, ev control.Event[A]) (wait func() (A, error)) {
	return begin(ctx, l, ev, request{note: NoteOf(ctx)})
}

func begin[A any](ctx context.Context, l *Loop, ev control.Event[A], r request) (wait func() (A, error)) {
	var answer, none A
	var refusal *state.Refusal
	r.cost = costOf(ev)
	_, r.submit = any(ev).(control.Submit)
	_, r.frugal = any(ev).(control.NodeAlive)
	r.apply = func(c *control.Controller, now sched.Time) applied {
		var eff effects.Set
		answer, refusal, eff = control.Apply(c, now, ev)
		return applied{eff, refusal, func() control.Audit { return control.AuditOf(ev, answer, refusal) }}
	}
	answered := l.post(ctx, r)
	return func() (A, error) {
		if err := answered(); err != nil {
			return none, err // and whether it was applied is not known
		}
		if refusal != nil {
			return none, refusal
		}
		return answer, nil
	}
}

// Ask runs f in the loop, between turns. It must be quick and change nothing.
// When ask has returned, with an error too, f does not run any more.
func (l *Loop) Ask(ctx context.Context, f func(*control.Controller, sched.Time)) error {
	var mu sync.Mutex
	gone := false
	err := l.send(ctx, request{cost: costAsk, ask: func(c *control.Controller, now sched.Time) {
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

func (l *Loop) send(ctx context.Context, r request) error { return l.post(ctx, r)() }

// post lets a request wait for its turn, and gives what waits for its answer.
func (l *Loop) post(ctx context.Context, r request) (answered func() error) {
	r.reply = make(chan error, 1)
	l.inbox.put(userOf(ctx), r.cost, r)
	return func() error {
		select {
		case err := <-r.reply:
			return err
		case <-ctx.Done():
			return ctx.Err()
		case <-l.ended:
			return errStopped
		}
	}
}

// Now is the time by which the controller counts. Nobody's setting of the machine's
// clock makes it jump, and it is not before the last turn's: what a node was told by it would be old to the next one for ever.
func (l *Loop) Now() time.Time { return time.UnixMilli(int64(max(l.clock.now(), l.View().Now))) }

// Point is how far the records have come, and Was whether they have been at one
// that was told before.
func (l *Loop) Point() state.Point     { return l.store.Point() }
func (l *Loop) Was(p state.Point) bool { return l.store.Was(p) }

// View is the controller as of the last turn.
func (l *Loop) View() *state.View { return l.view.Load() }

// Ended is closed when Run is about to return: nothing is decided any more.
func (l *Loop) Ended() <-chan struct{} { return l.ended }

// Left is what a controller that leads no more follows on with; see control.Controller.Left. It is called once, after Ended.
func (l *Loop) Left() (jobs *standby.Jobs, unread []job.Number, err error) {
	return l.ctl.Left(l.View())
}

// Commit stores what is not the controller's (tokens, keys) with its entry.
func (l *Loop) Commit(ctx context.Context, object, change string, records ...state.Record) error {
	return l.send(context.WithoutCancel(ctx), request{records: records, note: NoteOf(ctx).About(object, change)})
}

// Keep stores what is nobody's order, and so has no entry.
func (l *Loop) Keep(ctx context.Context, records ...state.Record) error {
	return l.send(ctx, request{records: records, cost: costAsk})
}

// Run is the loop goroutine. It returns when ctx is done, or with the error
// that makes it impossible to keep the promise that answers are durable; the
// process must then end, and a restart continues from what is stored.
func (l *Loop) Run(ctx context.Context) error {
	defer close(l.ended)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
		case <-l.inbox.more:
		case <-timer.C:
		}
		if ctx.Err() != nil { // nothing is begun any more, whatever waits
			if err := l.store.Commit(l.recordRefused(true)); err != nil && l.confirm == nil { // who leads no more may not
				return fmt.Errorf("commit: %w", err)
			}
			return nil
		}
		if err := l.turn(l.inbox.take()); err != nil {
			return err
		}
		timer.Reset(l.untilNext())
	}
}

// turn is one pass. The order in it is the durability promise.
func (l *Loop) turn(batch []request) error {
	began := time.Now()
	l.now = max(l.now, l.clock.now())
	l.clock.keep()
	stop := l.checkDisk()
	var eff effects.Set
	if stop == nil { // of before this turn, and so before its changes
		eff.Records = l.recordRefused(false)
	}
	replies := make([]error, len(batch))
	told := map[string]bool{} // nodes that this turn's answers tell all
	for i, r := range batch {
		replies[i] = l.apply(r, stop, &eff)
		told[r.node] = true
	}
	if stop == nil {
		l.pass(&eff)
		eff.Records = append(eff.Records, l.recordRefused(false)...)
		if r, due := l.ctl.There(l.now); due {
			eff.Records = append(eff.Records, r)
		}
	}
	var hooked []state.Record
	if l.Hooks != nil {
		hooked = l.Hooks.Records(eff.Moved)
		eff.Records = append(eff.Records, hooked...)
	}
	syncing := time.Now()
	if err := l.commit(eff.Records, len(batch)); err != nil {
		for _, r := range batch {
			r.reply <- l.notStored(err)
		}
		return fmt.Errorf("commit: %w", err)
	}
	if len(eff.Records) > 0 {
		l.meters.Commit(time.Since(began), time.Since(syncing), len(eff.Records))
	}
	l.meters.Prepulled(eff.Prepulled)
	l.tellOfNodes(eff.Nodes)
	before, view := l.view.Load(), l.ctl.View(l.now)
	l.view.Store(view)
	if l.published != nil {
		l.published()
	}
	l.Feed.publish(before, view, &eff)
	l.meters.Changes(before, view, eff.Changed)
	for i, r := range batch {
		if r.ask != nil {
			r.ask(l.ctl, l.now)
		}
		r.reply <- replies[i]
	}
	for _, n := range eff.Wake {
		if !told[n] {
			l.Nodes.Notify(n)
		}
	}
	for _, n := range eff.Changed {
		l.Jobs.Notify(n)
	}
	if len(hooked) > 0 {
		l.Hooks.Take(hooked)
	}
	return nil
}

// commit makes the turn's records durable. Where there are none it asks whether this controller still
// leads: another one may have decided meanwhile what is answered now.
func (l *Loop) commit(records []state.Record, requests int) error {
	if len(records) == 0 && requests > 0 && l.confirm != nil {
		return l.confirm()
	}
	return l.store.Commit(records)
}

// notStored is the answer to requests of a turn whose records were not stored, or of which
// that is not known as other controllers may have agreed to them.
func (l *Loop) notStored(err error) error {
	if l.confirm != nil {
		return errStopped
	}
	return api.Errorf(api.CodeUnavailable, "the controller could not store this: %v", err).
		WithHint("nothing was recorded; try again later")
}

// apply takes one request into the turn's effects.
func (l *Loop) apply(r request, stop error, eff *effects.Set) error {
	if r.ask != nil {
		return nil
	}
	if stop != nil && !r.frugal || r.submit && l.full != nil {
		return storageFull(errors.Join(stop, l.full))
	}
	result, refused := "ok", false
	var a applied
	if r.apply != nil {
		a = r.apply(l.ctl, l.now)
		eff.Add(a.effects)
		if r.note != nil {
			result, refused = r.note.tell(a.audit())
		}
	}
	if a.refusal == nil {
		eff.Records = append(eff.Records, r.records...)
	}
	switch {
	case r.note == nil || result == "":
	case refused:
		r.note.Result = result
		l.refused.add(r.note.AuditEntry)
	default:
		eff.Records = append(eff.Records, l.record(r.note, result))
	}
	return nil
}

// pass lets time pass and decides who starts.
func (l *Loop) pass(eff *effects.Set) {
	if t := l.ctl.NextTick(l.now); t > 0 && t <= l.now {
		_, _, e := control.Apply(l.ctl, l.now, control.Tick{Told: l.told.at, Zone: ZoneOf})
		eff.Add(e)
	}
	if l.ctl.Due() && l.now >= l.notSoon {
		began := l.clock.steady()
		eff.Add(l.ctl.Schedule(l.now))
		took := l.clock.since(began)
		// At most half of the time goes into scheduling.
		l.notSoon = l.now + sched.Time(took.Milliseconds())
		plan, _ := l.ctl.Plan()
		l.meters.Round(took, plan, eff.Missed)
	}
}

// untilNext is how long the loop may sleep if nothing arrives.
func (l *Loop) untilNext() time.Duration {
	next := l.now + 1000
	if l.halted {
		return time.Second // nothing is decided meanwhile, whatever is due; then the disk is looked at again
	}
	if t := l.ctl.NextTick(l.now); t > 0 {
		next = min(next, t)
	}
	if l.ctl.Due() {
		next = min(next, l.notSoon)
	}
	return max(time.Duration(next-l.clock.now())*time.Millisecond, 0)
}

// Load is how much a loop has to do, and what room its store has, in bytes.
type Load struct {
	Inbox, InboxSize      int // requests that wait
	Free, Reserve, Stored uint64
	FreeKnown             bool
}

// Load is the present one.
func (l *Loop) Load() Load {
	free, err := l.store.Free()
	return Load{Inbox: l.inbox.len(), InboxSize: inboxSize, Free: free, Reserve: l.reserve(), FreeKnown: err == nil, Stored: l.store.Metrics().DiskSpaceUsage()}
}

// Useless says that so little room is left on the disk that nothing at all is stored.
func (l *Loop) Useless() bool {
	free, err := l.store.Free()
	return err == nil && free < l.reserve()/4
}

// checkDisk looks at the room that is left. Below the reserve no jobs are
// taken; below a quarter of it nothing at all is stored (the error says so), so that
// the controller's picture never runs ahead of what is stored. Nodes keep their
// leases then, and jobs run on.
func (l *Loop) checkDisk() error {
	reserve := l.reserve()
	free, err := l.store.Free()
	if err == nil && free < reserve/4 {
		err = fmt.Errorf("%d MiB are left on the disk of the controller", free>>20)
	}
	if halted := err != nil; halted != l.halted {
		l.halted = halted
		if halted {
			l.log.Error("disk full: nothing is recorded until there is room; jobs that run go on", "error", err)
		} else {
			l.log.Info("disk has room again: what happened is recorded", "free_mib", free>>20)
		}
	}
	if err != nil {
		return err
	}
	full := free < reserve
	switch {
	case full && l.full == nil:
		l.log.Error("disk nearly full: no jobs are taken until there is room", "free_mib", free>>20, "reserve_mib", reserve>>20)
	case !full && l.full != nil:
		l.log.Info("disk has room again: jobs are taken", "free_mib", free>>20)
	}
	l.full = nil
	if full {
		l.full = fmt.Errorf("%d MiB are left on the disk of the controller, %d must stay free", free>>20, reserve>>20)
	}
	return nil
}

func storageFull(err error) error {
	return api.Errorf(api.CodeStorageFull, "the controller's disk is full: %v", err).
		WithHint("nothing was recorded; tell your operator, and try again when there is room")
}
