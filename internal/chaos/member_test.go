package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"gbatch/internal/ctld/follow"
	"gbatch/internal/ctld/loop"
	"gbatch/internal/replica"
	"gbatch/internal/store"
	"gbatch/sched"
)

// member is one of several controllers. What outlives its processes is its disk, with its store and its part of the common log.
type member struct {
	*machineOfController
	id     int
	kept   *kept
	stands atomic.Int64 // faults by which its process stands still

	waited  map[string]int // for the process to go on, by who waits; guarded by mu
	elector *elector       // of the process that runs, guarded by mu; nil: none does
}

// found makes the controllers, whose stores begin alike.
func found(w *world) (out []*member) {
	for i := range w.controllers {
		m := &member{machineOfController: newController(w), id: i, kept: &kept{voted: -1}, waited: map[string]int{}}
		m.ahead.Store(int64(between(w.draw("clock", i), -3*time.Hour, 3*time.Hour)))
		out = append(out, m)
		first := out[0].disk
		if i == 0 {
			if err := store.Found(store.Config{Dir: "db", FS: first, Log: w.log}); err != nil {
				w.audit.violation("the first store: %v", err)
			}
			continue
		}
		for _, name := range []string{"db", "db" + store.MarkSuffix} {
			if _, err := vfs.Clone(first.mem, m.disk.mem, name, name, vfs.CloneSync); err != nil {
				w.audit.violation("copy the first store: %v", err)
			}
		}
	}
	return out
}

func (m *member) name() string { return fmt.Sprint("c", m.id) }

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

// start begins a process. No lock is held while the time of its disk passes, as with the only controller.
func (m *member) start() {
	m.mu.Lock()
	if m.elector != nil || m.opening || m.off > 0 || m.w.ctx.Err() != nil {
		m.mu.Unlock()
		return
	}
	m.opening = true
	disk, kept := m.disk, m.kept
	m.mu.Unlock()
	jobs := &follow.Jobs{}
	machine, err := replica.OpenMachine(store.Config{Dir: "db", FS: disk, Log: m.w.log, Applied: jobs.Applied}, m.elapsed, m.w.log)
	if err != nil {
		m.w.audit.violation("controller %d does not start: %v", m.id, err)
		return
	}
	ctx, kill := context.WithCancel(context.Background())
	e := newElector(m, ctx, machine)
	e.kill, e.disk, e.kept, e.jobs = kill, disk, kept, jobs
	m.run(e)
	m.mu.Lock()
	m.elector, m.opening = e, false
	off := m.off > 0
	m.mu.Unlock()
	m.w.note("controller %d runs", m.id)
	if off { // it was to be killed meanwhile
		m.stop(100)
	}
}

// run has the parts of a process work until it ends, and closes its store then.
func (m *member) run(e *elector) {
	clock := loop.OpenClockBy(filepath.Join(m.w.dir, "clock"+m.name()), "boot", m.readings(), m.w.log)
	done := make(chan struct{}, 3)
	for _, part := range []func(){e.run, e.applies, func() { m.serve(e, clock) }} {
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
				m.w.audit.violation("controller %d cannot lead: %v", m.id, err)
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
	defer l.End()
	if err := l.Begin(); err != nil {
		return err
	}
	defer func() { // it follows again, and reads what there is
		e.jobs.Begin()
		for all := false; !all && e.ctx.Err() == nil; {
			var err error
			if all, err = e.jobs.Read(l.Store); err != nil {
				m.w.note("controller %d reads no further: %v", m.id, err)
				return
			}
		}
	}()
	p, err := m.openOn(l.Store, clock, l, e.jobs)
	if err != nil {
		return err
	}
	defer p.kill()
	if !e.onLost(p.kill) {
		return replica.ErrLost
	}
	stop := context.AfterFunc(e.ctx, p.kill)
	defer stop()
	m.w.audit.started(p)
	m.mu.Lock()
	if m.elector == e {
		m.proc = p
	}
	m.mu.Unlock()
	m.closed.Go(func() { // so that nobody is given ids while others wait for theirs
		for i := range m.w.clients {
			_, _ = p.ids.Of(fmt.Sprintf("user%d", i), nil) // another one leads
		}
	})
	err = p.loop.Run(p.ctx)
	m.mu.Lock()
	if m.proc == p {
		m.proc = nil
	}
	m.mu.Unlock()
	return err
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
		m.kept.synced = len(m.kept.log)
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

// befall has a fault of a controller happen, and ends it.
func (m *member) befall(f fault) {
	switch f.kind {
	case "kill a controller", "cut a controller's power":
		m.mu.Lock()
		m.off++
		m.mu.Unlock()
		m.stop(map[bool]int{true: 100}[f.kind == "kill a controller"])
		_ = m.w.sleep(f.lasts)
		m.mu.Lock()
		m.off--
		m.mu.Unlock()
		m.start()
	case "pause a controller":
		m.stands.Add(1)
		_ = m.w.sleep(f.lasts)
		m.stands.Add(-1)
	case "slow disk of a controller":
		m.slowed(f.by)
		_ = m.w.sleep(f.lasts)
		m.slowed(-f.by)
	case "full disk of a controller":
		m.filled(1)
		_ = m.w.sleep(f.lasts)
		m.filled(-1)
	case "set a controller's clock":
		m.ahead.Add(int64(f.by))
	default:
		m.w.net.disturb(f)
	}
}

func (m *member) slowed(by time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.disk.slow.Add(int64(by)) // the same on all that come after
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
	if err := sleep(e.ctx, w.net.delay(r)); err != nil {
		return none, err
	}
	if w.net.lostBetween(from, name, r) {
		return none, errors.Join(sleep(e.ctx, waits), errSilence)
	}
	o := w.members[to].part()
	if o == nil {
		return none, errDown
	}
	if w.net.isBad() && r.IntN(4) == 0 { // it comes once more, later
		later := w.net.delay(r)
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
	return a, sleep(e.ctx, w.net.delay(r))
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
