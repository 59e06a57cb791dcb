package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"gbatch/internal/ctld/controllers"
	"gbatch/internal/ctld/follow"
	"gbatch/internal/ctld/loop"
	"gbatch/internal/ctld/site"
	"gbatch/internal/replica"
	"gbatch/internal/state"
	"gbatch/internal/store"
	"gbatch/sched"
)

// member is one of several controllers, or a machine that may become one. What outlives its processes is its disk, with its
// store and its part of the common log.
type member struct {
	*machineOfController
	id     int
	kept   *kept
	stands atomic.Int64 // faults by which its process stands still

	waited  map[string]int // for the process to go on, by who waits; guarded by mu
	elector *elector       // of the process that runs, guarded by mu; nil: none does
	program int            // its version, guarded by mu
	unsound string         // why it cannot start or go on, guarded by mu; empty: it can
	harmed  bool           // something befell it for which it may say so, guarded by mu
}

// found makes the machines. All but the last are controllers, whose stores begin alike.
func found(w *world) (out []*member) {
	for i := range w.controllers + 1 {
		m := &member{machineOfController: newController(w), id: i, kept: &kept{voted: -1}, waited: map[string]int{}}
		m.conf.Replica = &site.Replica{Name: m.name()}
		m.ahead.Store(int64(between(w.draw("clock", i), -3*time.Hour, 3*time.Hour)))
		out = append(out, m)
	}
	first := store.Config{Dir: "db", FS: out[0].disk, Log: w.log}
	var files sink
	if err := errors.Join(store.Found(first), first.Pack(&files)); err != nil {
		w.audit.violation("the first store: %v", err)
	}
	out[0].disk = newDisk()
	s := founded(len(out))
	for _, m := range out[:w.controllers] {
		m.kept = &kept{there: true, term: 1, voted: -1, first: 1, firstTerm: 1, seats: s, synced: 1, copy: copied{1, 1, s, files.Bytes()}}
	}
	return out
}

func (m *member) name() string { return "c" + strconv.Itoa(m.id) }

// part is the name of what a fault is of.
func (w *world) part(f fault) string {
	if f.ctl {
		return w.members[f.on].name()
	}
	return w.nodes_[f.on].name
}

// gate waits while the process stands still. What waited goes on at different times, as nobody says in which order: who tells
// those from each other that began to wait at one moment.
func (m *member) gate(ctx context.Context, who string) error {
	return m.resumes(ctx, who, 300*time.Millisecond)
}

func (m *member) resumes(ctx context.Context, who string, most time.Duration) error {
	for n := 0; m.stands.Load() > 0; {
		if n == 0 { // of those who wait for the same the order is that in which they came
			m.mu.Lock()
			m.waited[who]++
			n = m.waited[who]
			m.mu.Unlock()
		}
		if err := sleep(ctx, between(m.w.draw("gate", m.id, who, n), time.Millisecond, most)); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// There, Founding and Copy are of a replica.Kept.
func (k *kept) There() (bool, error) { return k.there, nil }

// Founding says that no log is half made.
func (k *kept) Founding() bool { return false }

// Copy is the place of the last copy.
func (k *kept) Copy() (uint64, error) { return uint64(k.copy.index), nil }

// Last is that of replica.Kept.
func (k *kept) Last() (uint64, error) { return uint64(k.last()), nil }

// start begins a process. No lock is held while the time of its disk passes, as with the only controller.
func (m *member) start() {
	m.mu.Lock()
	if m.elector != nil || m.opening || m.off > 0 || m.w.ctx.Err() != nil || !m.kept.there || m.unsound != "" {
		m.mu.Unlock()
		return
	}
	m.opening = true
	disk, kept, program := m.disk, m.kept, m.program
	m.mu.Unlock()
	jobs := &follow.Jobs{}
	machine := replica.NewMachine(store.Config{Dir: "db", FS: disk, Log: m.w.log, Applied: jobs.Applied}, m.elapsed, m.w.log)
	origin, err := machine.Begin(kept)
	if err == nil && origin == replica.OfCopy && kept.copy.files != nil {
		err = machine.Restore(io.NopCloser(bytes.NewReader(kept.copy.files)))
	}
	if err == nil && origin == replica.OfNobody {
		err = errors.New("it would begin a site of its own")
	}
	if err != nil {
		_ = machine.Close()
		m.mu.Lock()
		m.opening = false
		m.mu.Unlock()
		m.cannot("start", err)
		return
	}
	kept.begin()
	ctx, kill := context.WithCancel(context.Background())
	e := newElector(m, ctx, machine)
	e.kill, e.disk, e.kept, e.program, e.jobs = kill, disk, kept, program, jobs
	e.commit, e.applied = kept.copy.index, kept.copy.index
	m.run(e)
	m.mu.Lock()
	m.elector, m.opening = e, false
	off := m.off > 0 || m.unsound != ""
	m.mu.Unlock()
	m.w.note("controller %d runs", m.id)
	if off { // it was to be killed meanwhile
		m.stop(100)
	}
}

// run has the parts of a process work until it ends, and closes its store then.
func (m *member) run(e *elector) {
	clock := loop.OpenClockBy(filepath.Join(m.w.dir, "clock"+m.name()), "boot", m.readings(), m.w.log)
	parts := []func(){e.run, e.applies, func() { m.serve(e, clock) }, func() { m.fails(e) }}
	done := make(chan struct{}, len(parts))
	for _, part := range parts {
		m.closed.Go(func() { part(); done <- struct{}{} })
	}
	m.closed.Go(func() {
		for range cap(done) {
			<-done
		}
		if err := e.fsm.Close(); err != nil {
			m.w.note("store of controller %d closed: %v", m.id, err)
		}
	})
}

// fails ends the process when it cannot go on, a moment later: nobody says whether what its loop does then is done before.
func (m *member) fails(e *elector) {
	select {
	case <-e.ctx.Done():
	case err := <-e.fsm.Failed():
		if sleep(e.ctx, between(m.w.draw("fails", m.id), time.Microsecond, time.Millisecond)) == nil {
			m.cannot("go on", err)
		}
	}
}

// elapsed is the clock from boot.
func (m *member) elapsed() time.Duration {
	_, steady := m.readings()()
	return steady
}

// serve is the controller whenever this member leads.
func (m *member) serve(e *elector, clock *loop.Clock) {
	for {
		select {
		case <-e.ctx.Done():
			return
		case <-e.elected:
		}
		for e.leads() && e.ctx.Err() == nil {
			if err := m.lead(e, clock); err != nil && !errors.Is(err, replica.ErrLost) && e.ctx.Err() == nil {
				m.cannot("lead", err)
				return
			}
			_ = sleep(e.ctx, 10*time.Millisecond)
		}
	}
}

func (m *member) lead(e *elector, clock *loop.Clock) error {
	l, err := replica.NewLead(e, e.fsm, func() int64 { return int64(clock.Now()) })
	if err != nil {
		return err
	}
	if !m.w.plant.ownClock {
		clock.GoOn(sched.Time(l.From))
	}
	if !e.outdated() {
		m.w.audit.goesOn(e, int64(clock.Now()))
	}
	defer l.End()
	if err := l.Begin(); err != nil {
		return err
	}
	var p *process
	defer func() { // it follows again, with what it has, or reads what there is
		if p != nil {
			left, unread, err := p.loop.Left()
			if err == nil {
				err = e.jobs.GoOn(l.Store, left, unread)
			}
			if err != nil {
				m.w.note("controller %d does not go on with what it has: %v", m.id, err)
			}
		}
		e.jobs.Begin()
		for all := false; !all && e.ctx.Err() == nil; {
			var err error
			if all, err = e.jobs.Read(l.Store); err != nil {
				m.w.note("controller %d reads no further: %v", m.id, err)
				return
			}
		}
	}()
	if p, err = m.openOn(l.Store, clock, l, e.jobs); err != nil {
		return err
	}
	p.others = m.others(e, p)
	defer p.kill()
	if !e.onLost(p.kill) {
		return replica.ErrLost
	}
	stop := context.AfterFunc(e.ctx, p.kill)
	defer stop()
	if !e.outdated() {
		m.w.audit.started(p)
	}
	if all, err := p.given(); err != nil {
		return err
	} else if all {
		m.serves(e, p)
	} else {
		m.closed.Go(func() { p.give(); m.serves(e, p) })
	}
	looked := make(chan struct{})
	go func() { p.others.Run(p.ctx); close(looked) }() // ends with the process
	err = p.loop.Run(settled{p.ctx, m.w})
	p.kill()
	<-looked
	m.mu.Lock()
	if m.proc == p {
		m.proc = nil
	}
	m.mu.Unlock()
	return err
}

// others looks after the other controllers while this one leads.
func (m *member) others(e *elector, p *process) *controllers.Members {
	out := controllers.New(e, m.conf, m.w.log)
	out.Useless = p.loop.Useless
	out.Reach = func(ctx context.Context, address string) bool {
		return e.reaches(ctx, m.w.machine(address).id)
	}
	out.Has = func(ctx context.Context, address string, entry uint64) bool {
		return e.asks(ctx, m.w.machine(address).id, "has", func(o *elector) answer {
			if o.m.gate(o.ctx, "has") != nil {
				return answer{}
			}
			o.mu.Lock()
			defer o.mu.Unlock()
			return answer{yes: o.applied >= int(entry)}
		})
	}
	return out
}

// serves has others ask a process, if it has not ended.
func (m *member) serves(e *elector, p *process) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.elector == e && p.ctx.Err() == nil {
		m.proc = p
	}
}

// given says whether all users have their ids.
func (p *process) given() (all bool, err error) {
	n := 0
	err = p.store.All(state.KindIDs, func(state.Record) error { n++; return nil })
	return n >= p.w.clients, err
}

// give gives users their ids before anybody asks this process for something: that takes time, and who waits for a lock meanwhile
// keeps the bubble's clock from going on. It is not done in the loop's first turn.
func (p *process) give() {
	for i := 0; i < p.w.clients && sleep(p.ctx, time.Millisecond) == nil; {
		if _, err := p.ids.Of(fmt.Sprintf("user%d", i), nil); err == nil {
			i++
		} else if sleep(p.ctx, time.Second) != nil { // its disk is full
			return
		}
	}
}

// reaches says whether another member answers.
func (e *elector) reaches(ctx context.Context, to int) bool {
	return e.asks(ctx, to, "reach", func(*elector) answer { return answer{yes: true} })
}

// asks says whether another member says yes.
func (e *elector) asks(ctx context.Context, to int, kind string, serve func(*elector) answer) bool {
	if ctx.Err() != nil { // whether it is asked once more then is nobody's decision
		return false
	}
	answered := make(chan bool, 1)
	e.w.wg.Go(func() {
		a, err := tell(e, to, kind, serve)
		answered <- err == nil && a.yes
	})
	select {
	case yes := <-answered:
		return yes
	case <-ctx.Done():
		return false
	}
}

// stop ends the process as a kill does; unsynced is how much of what was not synced is kept, in percent.
func (m *member) stop(unsynced int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.elector
	if e == nil {
		return
	}
	e.mu.Lock()
	m.kept = e.kept.after(unsynced)
	if m.w.plant.shortLog {
		m.kept.log = m.kept.log[:max(0, len(m.kept.log)-3)]
		m.kept.synced = m.kept.last()
	}
	e.mu.Unlock()
	old := m.disk
	if m.w.ctx.Err() == nil { // else nobody reads it again
		m.disk = m.disk.after(unsynced)
	}
	old.left.Store(true)
	m.elector, m.proc = nil, nil
	e.kill()
	m.w.note("controller %d killed, keeps %d percent of what is not synced", m.id, unsynced)
}

func (m *member) slowed(by time.Duration) *disk {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.disk.slow.Add(int64(by)) // the same on all that come after
	return m.disk
}

func (m *member) filled(by int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.disk.full.Add(by) // the same on all that come after
}

func (m *member) part() *elector {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.elector
}

// reached is the process that takes a request; nil: none does. Of several it is any that takes itself for the one that leads.
func (w *world) reached(ctx context.Context, r *rand.Rand) *process {
	if w.ctl != nil {
		return w.ctl.running()
	}
	first, who := r.IntN(len(w.members)), fmt.Sprint(r.Uint64())
	for i := range w.members {
		m := w.members[(first+i)%len(w.members)]
		p := m.running()
		if p == nil {
			continue
		}
		if m.stands.Load() > 0 { // it reads this when it goes on
			late, cancel := context.WithTimeout(ctx, silence)
			err := m.resumes(late, who, 10*time.Millisecond)
			cancel()
			if err != nil {
				return nil
			}
		}
		return p
	}
	return nil
}

// tell sends something to another member and gives its answer, as the network has it.
func tell(e *elector, to int, kind string, serve func(*elector) answer) (answer, error) {
	w, from, name := e.w, e.m.name(), e.w.members[to].name()
	var none answer
	r := w.draw("member", from, name, kind)
	gone, twice, late := w.net.meets(from, r)
	if err := sleep(e.ctx, w.net.betweenMembers(r)+late); err != nil {
		return none, err
	}
	w.trace("%s sends %s to %s, lost %t, twice %t, later by %s", from, kind, name, gone, twice, late)
	if w.net.lostBetween(from, name, r) || gone {
		return none, errors.Join(sleep(e.ctx, waits), errSilence)
	}
	o := w.members[to].part()
	if o == nil {
		return none, errDown
	}
	if twice || w.net.isBad() && r.IntN(4) == 0 { // it comes once more, later
		later := w.net.betweenMembers(r)
		w.audit.again()
		w.wg.Go(func() {
			if sleep(o.ctx, later) == nil {
				serve(o)
			}
		})
	}
	a := serve(o)
	if o.ctx.Err() != nil {
		return none, errDown
	}
	r = w.draw("reply", name, from, kind)
	if w.net.lostBetween(name, from, r) {
		return none, errors.Join(sleep(e.ctx, waits), errSilence)
	}
	return a, sleep(e.ctx, w.net.betweenMembers(r))
}

// lostBetween says whether what one member sends to another one does not arrive.
func (n *network) lostBetween(from, to string, r *rand.Rand) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	gone := n.bad > 0 && r.IntN(4) == 0
	if c := n.cut[from]; c != nil && c[0] > 0 {
		gone = true
	}
	if c := n.cut[to]; c != nil && c[1] > 0 {
		gone = true
	}
	n.w.audit.message(gone)
	return gone
}
