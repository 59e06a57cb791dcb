package rank

import (
	"errors"
	"fmt"

	"gbatch/cgroups"
	"gbatch/internal/api"
	"gbatch/internal/node"
	"gbatch/internal/noded/config"
	"gbatch/internal/noded/contact"
	"gbatch/internal/noded/cores"
)

// resize carries an order for other CPU and memory out, once in the life of a
// daemon; after a restart again, as the order stands until it was answered.
func (w *watch) resize() {
	r := w.r
	r.state.mu.Lock()
	q := r.state.resize
	done := r.state.status.Resize
	r.state.mu.Unlock()
	if q == nil || done != nil && done.Seq == q.Seq {
		return
	}
	answer := node.Resized{Seq: q.Seq}
	if err := r.regrant(q); err != nil {
		r.log.Warn("rank not resized", "cpus", q.CPUs, "mem", config.FormatBytes(q.MemBytes), "error", err)
		answer.Error = err.Error()
	} else {
		r.log.Info("rank resized", "cpus", q.CPUs, "mem", config.FormatBytes(q.MemBytes), "cores", r.cores.CPUs.String())
	}
	r.state.change(contact.AtOnce, func(s *node.RankStatus) {
		s.Cores = r.cores.CPUs.String()
		s.Resize = &answer
	})
}

// regrant gives the rank other cores and memory. Cores that it loses are free
// for others only when it has left them, and those that it gains are its own in
// the record before it may use them: a crash at any point leaves it more, until
// the order comes again.
func (r *Rank) regrant(q *api.Resize) error {
	old := r.cores
	next, err := r.node.Cores.Grow(r.order.id, q.CPUs, r.node.Devices.Near(r.order.gpus()))
	if err != nil {
		return err
	}
	both := cores.Grant{CPUs: old.CPUs.Union(next.CPUs), Mems: next.Mems}
	before := r.order.Allocation
	err = r.saveGrant(both, max(before.CPUs, q.CPUs), max(before.MemBytes, q.MemBytes))
	if err == nil {
		r.node.Reached("resize noted")
		limits := cgroups.Limits{MemoryBytes: q.MemBytes}
		if next.CPUs.Len() != old.CPUs.Len() {
			limits.CPUs, limits.Mems = next.CPUs, next.Mems
		}
		if err = r.container.Update(limits); err == nil {
			r.node.Reached("resized")
		}
	}
	if err != nil { // as it was
		r.node.Cores.Set(r.order.id, old.CPUs)
		return errors.Join(err, r.saveGrant(old, before.CPUs, before.MemBytes))
	}
	r.node.Cores.Set(r.order.id, next.CPUs)
	if err := r.saveGrant(next, q.CPUs, q.MemBytes); err != nil { // what is recorded is more, which does no harm
		r.log.Error("note that rank has less", "error", err)
		r.node.Health.DiskError(err)
	}
	return nil
}

// saveGrant writes down what the rank has now.
func (r *Rank) saveGrant(g cores.Grant, cpus int, mem int64) error {
	rec, err := r.order.recorded()
	if err != nil {
		return fmt.Errorf("note the change: %w", err)
	}
	r.state.mu.Lock()
	r.cores = g
	r.order.Allocation.CPUs, r.order.Allocation.MemBytes = cpus, mem
	r.state.mu.Unlock()
	rec.Order.Allocation, rec.Cores = r.order.Allocation, g.CPUs.String()
	if err := r.order.saveRecord(rec); err != nil {
		return fmt.Errorf("note the change: %w", err)
	}
	return nil
}
