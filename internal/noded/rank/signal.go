package rank

import (
	"errors"

	"gbatch/internal/node"
	"gbatch/internal/noded/contact"
	"gbatch/internal/noded/record"
)

// signals sends what was ordered and not sent yet, in order. The number is
// written down before each: after a crash in between a signal is lost, and never
// sent twice, since programs count on that more.
func (w *watch) signals() {
	r := w.r
	r.state.mu.Lock()
	list, last := r.state.signals, r.state.status.Signalled
	r.state.signals = nil
	r.state.mu.Unlock()
	for _, s := range list {
		if s.Seq <= last {
			continue
		}
		if err := errors.Join(r.order.need(), record.SetNumber(r.order.dir, record.FileSignalled, uint64(s.Seq))); err != nil {
			r.log.Error("signal not sent: it could not be noted", "signal", s.Name, "error", err)
			return
		}
		last = s.Seq
		if err := r.container.Signal(signalNumber(s.Name)); err != nil {
			r.log.Warn("send signal", "signal", s.Name, "error", err)
		} else {
			r.log.Info("sent the program a signal, as ordered", "signal", s.Name)
		}
		r.state.change(contact.AtOnce, func(st *node.RankStatus) { st.Signalled = s.Seq })
	}
}
