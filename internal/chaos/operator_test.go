package chaos

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"gbatch/internal/control"
	"gbatch/internal/ctld/loop"
	"gbatch/internal/state"
	"gbatch/internal/store"
)

// What befalls one of several controllers, and what their operator does about it. One machine at a time is without its disk, as
// sites with three survive the loss of one.

func (m *member) begins() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.opening
}

// befall has a fault of a controller happen, and ends it.
func (m *member) befall(f fault) {
	switch f.kind {
	case "kill a controller", "cut a controller's power":
		m.away(map[bool]int{true: 100}[f.kind == "kill a controller"], f.lasts, nil)
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
	case "lose a controller's machine", "remove a controller", "lose a controller's store", "flip a bit of a controller's":
		m.w.operated(func() { m.operate(f, nil) })
	case oldStore:
		m.mu.Lock()
		old := m.disk.after(0)
		m.mu.Unlock()
		if m.w.sleep(f.by) == nil {
			m.w.audit.fault(f.kind)
			m.w.operated(func() { m.operate(f, old) })
		}
	case "update a controller":
		m.w.operated(func() { m.update(f) })
	default:
		m.w.net.disturb(f)
	}
}

// givesUp has the operator give up jobs that run on without contact where their machine came back on an older disk, or another
// one in its place, and is refused for them.
func (w *world) givesUp() {
	for n := 0; w.sleep(between(w.draw("gives up", n), time.Minute, 5*time.Minute)) == nil; n++ {
		gone, err := call(w.ctx, w.net, request{who: "operator"}, func(ctx context.Context, p *process) (gone int, err error) {
			for n := range p.loop.View().Nodes.All() {
				if n.Lost && n.Double != "" && err == nil {
					gone++
					_, err = loop.Do(p.user(ctx, "operator"), p.loop, control.Forget{Node: n.Name, By: "operator", GiveUpJobs: true})
				}
			}
			return gone, err
		})
		if err == nil {
			for range gone {
				w.audit.saw("nodes given up")
			}
		}
	}
}

// operated has the operator do something, after all else that they do.
func (w *world) operated(do func()) {
	select {
	case w.operator <- struct{}{}:
		do()
		<-w.operator
	case <-w.ctx.Done():
	}
}

// away ends the process, and starts it again later. Meanwhile something may be done to its disk.
func (m *member) away(unsynced int, later time.Duration, do func()) {
	m.mu.Lock()
	m.off++
	m.mu.Unlock()
	m.stop(unsynced)
	for m.begins() && m.w.sleep(time.Millisecond) == nil { // it ends when it has begun
	}
	if do != nil {
		m.mu.Lock()
		do()
		m.mu.Unlock()
	}
	_ = m.w.sleep(later)
	m.mu.Lock()
	m.off--
	m.mu.Unlock()
	m.start()
}

// operate has something befall the disk, and the operator mend it. Old is what was on it before.
func (m *member) operate(f fault, old *disk) {
	switch f.kind {
	case "lose a controller's machine":
		same := false // the planted bug: it comes back as if it were the same
		m.away(0, f.lasts, func() {
			same = m.w.plant.wiped && m.kept.there
			m.disk, m.kept = m.disk.empty(), &kept{there: same, voted: -1}
		})
		if !same {
			m.replace(0)
		}
		return
	case "remove a controller":
		m.replace(f.lasts)
		return
	}
	m.mu.Lock()
	m.harmed = m.unsound == "" && m.kept.there
	harmed := m.harmed
	m.mu.Unlock()
	switch {
	case !harmed:
		return
	case f.kind == oldStore:
		m.away(0, f.lasts, func() { m.disk = old })
	case f.kind == "lose a controller's store":
		m.away(0, f.lasts, func() { m.disk = m.disk.empty() })
	default:
		m.away(100, f.lasts, func() { m.w.note("flipped a bit of %s of controller %d", m.disk.flip(m.w.draw("flip", m.id)), m.id) })
	}
	m.read()
	m.mu.Lock()
	m.harmed = false
	damaged := m.unsound != ""
	m.mu.Unlock()
	if damaged {
		m.w.audit.saw("damaged stores noticed")
		m.replace(0)
	}
}

// read reads all that the controller stores, as its scrub does, as soon as it runs.
func (m *member) read() {
	for m.w.sleep(time.Second) == nil && !m.ended() {
		e := m.part()
		if e == nil {
			continue
		}
		read := make(chan bool, 1)
		if e.between(func() { read <- e.scrub() }) != nil {
			continue
		}
		done := false
		select {
		case done = <-read:
		case <-e.ctx.Done(): // as what is read is damaged, or for another reason
		}
		if done || m.ended() {
			return
		}
	}
}

// ended says that it cannot start or go on until somebody mends it.
func (m *member) ended() bool {
	why := m.why()
	return why != "" && !older(why)
}

// scrub says whether there was a store to be read. It is called between two entries.
func (e *elector) scrub() (there bool) {
	st := e.store()
	if st == nil {
		return false
	}
	damage, err := st.Scrub("db.read", func(state.Record) error { return nil })
	if damage != nil && e.ctx.Err() == nil { // else it has ended for that
		e.m.cannot("be read", damage)
	} else if err != nil {
		e.w.note("scrub of controller %d: %v", e.m.id, err)
	}
	return true
}

// store is what the member stores now; nil: nothing yet. It stays between two entries.
func (e *elector) store() (out *store.Store) {
	_ = e.fsm.Read(func(st *store.Store) error { out = st; return nil })
	return out
}

// why is the reason for which it cannot start or go on.
func (m *member) why() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.unsound
}

// older says that a controller cannot go on as another one is newer.
func older(why string) bool { return strings.Contains(why, "newer gctld: update this controller") }

// cannot says that the process cannot start, lead or go on, and ends it.
func (m *member) cannot(do string, err error) {
	m.mu.Lock()
	harmed := m.harmed
	m.unsound = err.Error()
	m.mu.Unlock()
	m.w.note("controller %d cannot %s", m.id, do)
	switch {
	case older(err.Error()):
		m.w.audit.saw("older controllers that stopped")
		m.w.wg.Go(m.updated)
	case !harmed:
		m.w.audit.violation("controller %d cannot %s: %v", m.id, do, err)
	}
	m.stop(100)
}

// update has a newer program run: the newest, or one that is newer than all.
func (m *member) update(f fault) {
	m.away(100, f.lasts, func() {
		if m.program == int(m.w.newest.Load()) {
			m.w.newest.Add(1)
		}
		m.program = int(m.w.newest.Load())
	})
}

// updated has the newest program run where an older one could not go on.
func (m *member) updated() {
	_ = m.w.sleep(between(m.w.draw("update", m.id), 5*time.Second, time.Minute))
	m.mu.Lock()
	if older(m.unsound) {
		m.unsound, m.program = "", int(m.w.newest.Load())
	}
	m.mu.Unlock()
	m.start()
}

// writes is an entry as this program writes it, and reads one as it reads it.
func (e *elector) writes(entry []byte) *raft.Log {
	data := slices.Clone(entry)
	data[0] += byte(e.program)
	return &raft.Log{Type: raft.LogCommand, Data: data}
}

func (e *elector) reads(l *raft.Log) *raft.Log {
	if l.Data[0] > byte(1+e.program) {
		return l
	}
	known := *l
	known.Data = slices.Clone(l.Data)
	known.Data[0] = 1
	return &known
}

// replace has the operator take a controller out, after a while empty its disk, and add it again. The last machine is
// no controller at first: it is added, or taken out.
func (m *member) replace(later time.Duration) {
	was := byte(away)
	m.asks(func(p *process, e *elector) bool {
		seat := e.seatOf(m.id)
		if seat == away || seat == 0 {
			return seat == away
		}
		was = seat
		return m.remove(p, e)
	})
	_ = m.w.sleep(later)
	in := m.id < m.w.controllers || was == away
	m.away(0, 0, func() {
		m.kept, m.disk, m.unsound = &kept{voted: -1, there: in, from: math.MaxInt}, m.disk.empty(), ""
	})
	if in {
		m.asks(func(p *process, e *elector) bool {
			switch e.seatOf(m.id) {
			case 0:
				return false
			case counts: // it was added, and the answer did not come
				m.joinedBy(e.Agreed())
				return true
			}
			entry, err := p.others.Add(m.name(), m.name())
			if err == nil {
				m.joinedBy(entry)
			}
			return err == nil
		})
		// Until its word counts the site may live by two, and does not survive the loss of one.
		m.asks(func(_ *process, e *elector) bool { return e.seatOf(m.id) == counts })
		m.w.audit.saw("controllers added")
	}
}

// joinedBy is the entry that the operator was told when the member was added.
func (m *member) joinedBy(entry uint64) {
	if e := m.part(); e != nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.kept.from = int(entry)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept.from = int(entry)
}

// remove takes a controller out, whichever leads.
func (m *member) remove(p *process, e *elector) bool {
	if e.m == m { // another one is to lead first
		for i, o := range m.w.members {
			if o != m && e.seatOf(i) == counts && e.Transfer(o.name()) == nil {
				break
			}
		}
		return false
	}
	return p.loop.Commit(p.ctx, "controller "+m.name(), "removed") == nil && p.others.Remove(m.name()) == nil
}

// asks has the operator ask who leads again and again, until that has done something.
func (m *member) asks(do func(*process, *elector) bool) {
	for n := 0; m.w.sleep(between(m.w.draw("operator", n), time.Second, 3*time.Second)) == nil; n++ {
		for _, o := range m.w.members {
			e, p := o.part(), o.running()
			if e != nil && p != nil && p.lead.Fresh(m.w.ctx) == nil && do(p, e) {
				return
			}
		}
	}
}
