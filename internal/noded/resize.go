package noded

import (
	"errors"
	"fmt"

	"gbatch/cgroups"
	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
)

// setResize takes in what the controller wants the rank to have. Called with
// a.mu held.
func (r *rank) setResize(q *api.Resize) {
	if q == nil || r.resize != nil && r.resize.Seq == q.Seq {
		return
	}
	r.resize = q
	r.poke()
}

// resize carries an order for other CPU and memory out, once in the life of a
// daemon; after a restart again, as the order stands until it was answered.
func (w *watch) resize() {
	r := w.r
	r.a.mu.Lock()
	q := r.resize
	done := r.status.Resize
	r.a.mu.Unlock()
	if q == nil || done != nil && done.Seq == q.Seq {
		return
	}
	answer := node.Resized{Seq: q.Seq}
	if err := r.regrant(q); err != nil {
		r.log.Warn("rank not resized", "cpus", q.CPUs, "mem", formatBytes(q.MemBytes), "error", err)
		answer.Error = err.Error()
	} else {
		r.log.Info("rank resized", "cpus", q.CPUs, "mem", formatBytes(q.MemBytes), "cores", r.cores.CPUs.String())
	}
	r.change(newsNow, func(s *node.RankStatus) {
		s.Cores = r.cores.CPUs.String()
		s.Resize = &answer
	})
}

// regrant gives the rank other cores and memory. Cores that it loses are free
// for others only when it has left them, and those that it gains are its own in
// the record before it may use them: a crash at any point leaves it more, until
// the order comes again.
func (r *rank) regrant(q *api.Resize) error {
	old := r.cores
	next, err := r.a.cores.grow(r.id, q.CPUs, r.a.devices.Near(uuids(r.order.Allocation)))
	if err != nil {
		return err
	}
	both := grant{CPUs: old.CPUs.Union(next.CPUs), Mems: next.Mems}
	before := r.order.Allocation
	err = r.saveGrant(both, max(before.CPUs, q.CPUs), max(before.MemBytes, q.MemBytes))
	if err == nil {
		r.a.reached("resize noted")
		limits := cgroups.Limits{MemoryBytes: q.MemBytes}
		if next.CPUs.Len() != old.CPUs.Len() {
			limits.CPUs, limits.Mems = next.CPUs, next.Mems
		}
		if err = r.shim.Update(limits); err == nil {
			r.a.reached("resized")
		}
	}
	if err != nil { // as it was
		r.a.cores.set(r.id, old.CPUs)
		return errors.Join(err, r.saveGrant(old, before.CPUs, before.MemBytes))
	}
	r.a.cores.set(r.id, next.CPUs)
	if err := r.saveGrant(next, q.CPUs, q.MemBytes); err != nil { // what is recorded is more, which does no harm
		r.log.Error("note that rank has less", "error", err)
		r.a.health.diskError(err)
	}
	return nil
}

// saveGrant writes down what the rank has now.
func (r *rank) saveGrant(g grant, cpus int, mem int64) error {
	rec, err := loadRecord(r.dir)
	if err != nil {
		return fmt.Errorf("note the change: %w", err)
	}
	r.a.mu.Lock()
	r.cores = g
	r.order.Allocation.CPUs, r.order.Allocation.MemBytes = cpus, mem
	r.a.mu.Unlock()
	rec.Order.Allocation, rec.Cores = r.order.Allocation, g.CPUs.String()
	if err := saveRecord(r.dir, rec); err != nil {
		return fmt.Errorf("note the change: %w", err)
	}
	return nil
}

// grow finds n processors for a rank that has some: of its own if it has
// enough, else its own and further ones. Those that it gains are held for it,
// those that it is to lose still are.
func (m *coreMap) grow(id job.RankID, n int, near []int) (grant, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	have, ok := m.held[id]
	if m.shared || !ok {
		return grant{CPUs: m.sharedSet()}, nil
	}
	pick := func(n int, busy cgroups.CPUSet) (grant, error) {
		set, mems, err := m.topology.Pick(cgroups.PickRequest{N: n, NearNUMA: near, Busy: busy, Reserved: m.reserved})
		return grant{CPUs: set, Mems: mems}, err
	}
	others := m.topology.Online().Minus(have)
	if n <= have.Len() {
		return pick(n, others)
	}
	var busy cgroups.CPUSet
	for _, s := range m.held {
		busy = busy.Union(s)
	}
	more, err := pick(n-have.Len(), busy)
	if err != nil {
		return grant{}, fmt.Errorf("choose cores for %s: %w", id, err)
	}
	all := have.Union(more.CPUs)
	m.held[id] = all
	return pick(n, m.topology.Online().Minus(all))
}

// set notes the processors that a rank has now.
func (m *coreMap) set(id job.RankID, set cgroups.CPUSet) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.held[id]; ok {
		m.held[id] = set
	}
}
