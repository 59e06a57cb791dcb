package replica

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"

	"gbatch/internal/store"
)

// An entry of the common log is its version, the term in which who proposed it began to lead, the
// time by its clock (milliseconds), and a batch of the store.
const (
	entryVersion = 1
	entryHeader  = 1 + 8 + 8
)

func newEntry(term uint64, nowMS int64, batch []byte) []byte {
	e := make([]byte, 0, entryHeader+len(batch))
	e = append(e, entryVersion)
	e = binary.BigEndian.AppendUint64(e, term)
	e = binary.BigEndian.AppendUint64(e, uint64(nowMS))
	return append(e, batch...)
}

// errStale is of a batch that was decided before somebody else led.
var errStale = errors.New("it was decided in an earlier term")

// Machine is what the common log is applied to: this member's store.
type Machine struct {
	store  store.Config
	log    *slog.Logger
	failed chan error            // an entry could not be applied: the process must end
	broken atomic.Pointer[error] // that; no later entry is applied, as that one would be missing for good

	begun     atomic.Bool // its store is open, or is to come
	unwritten atomic.Bool // the last entries that came could not be written

	clock *commonClock
	seen  uint64 // the last entry that came to be applied; of the goroutine that calls Apply

	mu sync.Mutex
	st *store.Store // nil: none has come yet
}

func newMachine(c store.Config, log *slog.Logger) *Machine {
	m := &Machine{store: c, log: log, failed: make(chan error, 1), clock: newCommonClock(log)}
	m.store.Mend, m.store.Damaged = again, m.damaged
	return m
}

// NewMachine is for a common log that is no Replica's. Elapsed is the machine's clock from boot.
func NewMachine(c store.Config, elapsed func() time.Duration, log *slog.Logger) *Machine {
	m := newMachine(c, log)
	m.clock.read = elapsed
	return m
}

// Failed gives the error by which this member cannot go on: the process must end.
func (m *Machine) Failed() <-chan error { return m.failed }

// Read lets f read this member's store, if one has come yet. It is not replaced meanwhile.
func (m *Machine) Read(f func(*store.Store) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.st == nil {
		return nil
	}
	return f(m.st)
}

func (m *Machine) current() *store.Store {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.st
}

// stored is the answer to who proposed an entry that was applied: its place in the common log.
type stored uint64

// Apply is called by one goroutine, entry after entry.
func (m *Machine) Apply(l *raft.Log) any {
	m.seen = l.Index
	if err := m.whole(); err != nil {
		return err
	}
	if err := m.apply(l); err != nil {
		m.fail(err)
		return err
	}
	if binary.BigEndian.Uint64(l.Data[1:]) != l.Term {
		return errStale
	}
	return stored(l.Index)
}

// fail has this member end. No entry is applied after that.
func (m *Machine) fail(err error) {
	m.broken.Store(&err)
	select {
	case m.failed <- err:
	default: // it ends for an earlier one
	}
}

// notWritten has this member end whose disk refuses what it shall agree to: who leads could store nothing and be elected again and
// again, and who follows falls behind. One that is full may have room again, and who leads is then another one (controllers.Members).
func (m *Machine) notWritten(err error) {
	switch full := errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT); {
	case !full:
		m.fail(fmt.Errorf("write to the common log: %w; look at the disk", err))
	case !m.unwritten.Swap(true):
		m.log.Error("the disk is full: this controller takes no entry of the common log until there is room", "error", err)
	}
}

// whole says why this member lacks an entry; nil: it lacks none of those that came.
func (m *Machine) whole() error {
	if why := m.broken.Load(); why != nil {
		return *why
	}
	return nil
}

func (m *Machine) apply(l *raft.Log) error {
	if len(l.Data) < entryHeader || l.Data[0] != entryVersion {
		return fmt.Errorf("entry %d of the common log is of a newer gctld: update this controller", l.Index)
	}
	if binary.BigEndian.Uint64(l.Data[1:]) != l.Term {
		return nil // each member passes it over, and who proposed it is told
	}
	st := m.current()
	if st == nil {
		return fmt.Errorf("entry %d of the common log came before the store that it belongs to", l.Index)
	}
	if err := st.Apply(l.Index, shownBy(l), l.Data[entryHeader:]); err != nil {
		return err
	}
	m.clock.hear(shownBy(l))
	return nil
}

// Hear takes in how far the clock of who leads has come. A common log calls it of each entry when that is on this member's
// disk: until it is applied, much time may pass in which nobody leads.
func (m *Machine) Hear(l *raft.Log) {
	if l.Type == raft.LogCommand && len(l.Data) >= entryHeader && l.Data[0] == entryVersion {
		m.clock.hearOf(shownBy(l))
	}
}

// shownBy is what the clock of an entry's author showed.
func shownBy(l *raft.Log) int64 { return int64(binary.BigEndian.Uint64(l.Data[9:])) }

// heard is the log on disk, which has the machine hear of entries as they come.
type heard struct {
	*wal.WAL
	machine *Machine
	copied  func() (uint64, error) // Kept.Copy
}

// Snapshot copies the store, mostly by links. It is called by the goroutine that calls Apply. There is nothing to copy before that has
// seen all that the store has: the copy would pass for one of an entry before, and who has got it, for one whose log has lost its end.
func (m *Machine) Snapshot() (raft.FSMSnapshot, error) {
	if err := m.whole(); err != nil {
		return nil, err // the log would be dropped with what could not be applied
	}
	st := m.current()
	if st == nil || m.seen < st.Applied() {
		return nil, raft.ErrNothingNewToSnapshot
	}
	to := m.beside(sending)
	if err := to.Remove(); err != nil {
		return nil, err
	}
	if err := st.Backup(to.Dir); err != nil {
		return nil, err
	}
	return snapshot{to}, nil
}

// What lies beside the store while it is copied.
const (
	sending   = ".sending"
	receiving = ".receiving"
	replaced  = ".replaced"
	suspect   = ".suspect" // a note that it is damaged
	aside     = ".damaged" // one that was
)

func (m *Machine) beside(suffix string) store.Config {
	c := m.store
	c.Dir += suffix
	c.Damaged = nil // that is not of the store that is open
	return c
}

// Restore takes another member's store in place of this one. It is called by the goroutine that calls Apply. Without it
// this member would stay behind for good, so that an error is one by which it must end.
func (m *Machine) Restore(rc io.ReadCloser) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	err := m.restore(rc)
	if err != nil {
		m.fail(err)
	}
	return err
}

func (m *Machine) restore(rc io.ReadCloser) error {
	coming, old := m.beside(receiving), m.beside(replaced)
	err := coming.Remove()
	if err == nil {
		err = coming.Unpack(rc)
	}
	if err == nil {
		err = store.CheckReceived(coming) // while the old one is still there
	}
	if err != nil {
		return fmt.Errorf("receive the store of another controller, which may be damaged there: %w", err)
	}
	if m.st != nil {
		m.begun.Store(false) // what is found damaged in this one now is of no matter
		defer m.begun.Store(true)
		if err := m.st.Close(); err != nil {
			m.log.Warn("the store that is replaced did not close well", "error", err)
		}
		m.st = nil
	}
	err = old.Remove()
	if err == nil {
		err = m.store.Rename(old.Dir)
	}
	if err == nil {
		err = coming.Rename(m.store.Dir)
	}
	if err == nil {
		m.st, err = store.Received(m.store)
	}
	if err != nil {
		return fmt.Errorf("take the store of another controller: %w", err)
	}
	m.seen = m.st.Applied()
	m.clock.hear(m.st.Shown()) // nothing may come after it before this member leads
	m.log.Info("the store came from another controller", "through", m.st.Applied())
	return old.Remove()
}

// Close closes the store.
func (m *Machine) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.st == nil {
		return nil
	}
	err := m.st.Close()
	m.st = nil
	return errors.Join(err, m.beside(sending).Remove())
}
