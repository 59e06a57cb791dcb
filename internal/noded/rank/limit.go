package rank

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"gbatch/internal/job"
	"gbatch/internal/noded/record"
	"gbatch/oci/atomicfile"
	"gbatch/oci/lease"
)

// The time limit of a rank. This daemon keeps it; its shim does where the daemon is away.

func (o *order) limit() time.Duration { return time.Duration(o.LimitMS) * time.Millisecond }

// limitFile is where the shim reads a limit that is not the first.
func (o *order) limitFile() string { return filepath.Join(o.dir, "limit.json") }

// shimLimit is the limit as a shim has it.
func (o *order) shimLimit() lease.Limit {
	return lease.Limit{RunMS: o.LimitMS, Signal: int(signalNumber(o.stopSignal())), GraceMS: o.GraceMS}
}

// saveLimit tells the shim of another limit.
func saveLimit(o *order) error {
	b, err := json.Marshal(o.shimLimit())
	if err == nil {
		err = atomicfile.Write(o.limitFile(), atomicfile.Sum(b))
	}
	if err != nil {
		return fmt.Errorf("note time limit: %w", err)
	}
	return nil
}

func limitText(d time.Duration) string { return fmt.Sprintf("time limit of %s reached", d) }

// arm sets the time limit of a program that runs, and the warning before it.
func (w *watch) arm() {
	ms := w.r.order.LimitMS
	if ms <= 0 {
		return
	}
	end := w.at.Add(time.Duration(ms) * time.Millisecond)
	w.limit.Reset(time.Until(end))
	if g := w.r.order.Spec.Gbatch; g != nil && g.WarnBefore > 0 && !record.IsMarked(w.r.order.dir, fileWarned) {
		w.warn.Reset(time.Until(end.Add(-time.Duration(g.WarnBefore) * time.Second)))
	}
}

// relimit carries an order for another time limit out. It is in the record before
// it counts, so that a restart without a word of the controller keeps it.
func (w *watch) relimit() {
	r := w.r
	r.state.mu.Lock()
	ms := r.state.limitMS
	r.state.mu.Unlock()
	if ms == 0 || ms == r.order.LimitMS {
		return
	}
	rec, err := r.order.recorded()
	if err == nil {
		rec.Order.LimitMS = ms
		err = errors.Join(r.order.need(), r.order.saveRecord(rec), saveLimit(&order{RunOrder: rec.Order, dir: r.order.dir}))
	}
	if err != nil {
		r.log.Warn("a restart of the daemon would forget the new time limit", "error", err)
	}
	r.log.Info("time limit changed", "was", time.Duration(r.order.LimitMS)*time.Millisecond, "limit", time.Duration(ms)*time.Millisecond)
	r.order.LimitMS = ms
	w.arm()
}

func (w *watch) overLimit() {
	r := w.r
	r.Stop(Stop{
		Signal: r.order.stopSignal(),
		Grace:  r.order.grace(),
		Reason: job.MaxRuntime,
		Text:   limitText(r.order.limit()),
	})
}
