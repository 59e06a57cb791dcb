package rank

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"gbatch/internal/node"
	"gbatch/internal/noded/contact"
	"gbatch/oci/atomicfile"
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
		if err := errors.Join(r.order.need(), markSignalled(r.order.dir, s.Seq)); err != nil {
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

func markSignalled(dir string, seq uint32) error {
	return atomicfile.Write(filepath.Join(dir, fileSignalled), atomicfile.Sum(strconv.AppendUint(nil, uint64(seq), 10)))
}

// lastSignalled reads what markSignalled wrote; 0 if nothing.
func lastSignalled(dir string) (uint32, error) {
	b, err := atomicfile.Read(filepath.Join(dir, fileSignalled))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the last signal: %w", err)
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 32)
	if err != nil {
		return 0, fmt.Errorf("read the last signal: %w", err)
	}
	return uint32(n), nil
}
