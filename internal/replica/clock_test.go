package replica

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"

	"gbatch/internal/store"
)

// steadyClock is a machine's clock from boot as a test sets it.
type steadyClock struct{ at time.Duration }

func (s *steadyClock) started(path, boot string) *Machine {
	c := &commonClock{read: func() time.Duration { return s.at }, boot: boot, log: slog.New(slog.DiscardHandler)}
	c.goOn(path)
	return &Machine{clock: c}
}

func entryAt(nowMS int64) *raft.Log { return &raft.Log{Data: newEntry(1, nowMS, nil)} }

// TestHeard: time counts from when an entry came, and not from when it was agreed on
// after an election.
func TestHeard(t *testing.T) {
	s := &steadyClock{time.Hour}
	m := s.started("", "boot")
	if got := m.clock.notBefore(); got != 0 {
		t.Errorf("the clock has come to %d before anything was heard", got)
	}
	m.Hear(entryAt(3_600_000))
	if got := m.clock.notBefore(); got != 0 {
		t.Errorf("by the first entry, which may never be agreed on, it has come to %d", got)
	}
	m.Hear(entryAt(500))
	s.at += time.Second
	m.clock.hear(500) // it is applied
	if got := m.clock.notBefore(); got != 1500 {
		t.Errorf("by one that came a second before it was agreed on it has come to %d, want 1500", got)
	}
	m.Hear(entryAt(2000))
	s.at += 9 * time.Second
	m.Hear(entryAt(2000)) // it comes again
	m.Hear(&raft.Log{Type: raft.LogNoop})
	if got := m.clock.notBefore(); got != 11_000 {
		t.Errorf("the clock has come to %d, want 11000", got)
	}
	m.Hear(entryAt(12_000))
	if got := m.clock.notBefore(); got != 12_000 {
		t.Errorf("a newer one is not taken: %d", got)
	}
}

// TestHeardBeforeRestart: the time that a member was away has passed for it, too, once it leads,
// though its log's last entry is from before that.
func TestHeardBeforeRestart(t *testing.T) {
	const started, away = 1_000_000, 9_000
	cases := map[string]struct {
		boot string // after the restart
		file string // instead of what was kept
		came []int64
		want int64
	}{
		"its own log alone":              {"boot", "", []int64{started}, started + away},
		"entries that it has missed":     {"boot", "", []int64{started, started + 4_000, started + 8_000}, started + away},
		"a new entry":                    {"boot", "", []int64{started, started + away + 300}, started + away + 300},
		"the machine was started again":  {"other", "", []int64{started}, started},
		"the file is cut":                {"boot", `{"boot":"bo`, []int64{started}, started},
		"the file is of no boot at all":  {"", `{"boot":"","aheadMs":99000000}`, []int64{started}, started},
		"the file is of a later version": {"boot", `{"boot":"boot","aheadMs":-3600000,"more":1}`, []int64{started}, started},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), heardFile)
			s := &steadyClock{time.Hour}
			s.started(path, "boot").clock.hear(started)
			if c.file != "" {
				if err := os.WriteFile(path, []byte(c.file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			s.at += away * time.Millisecond
			m := s.started(path, c.boot)
			for _, nowMS := range c.came {
				m.clock.hear(nowMS)
			}
			if diff := cmp.Diff(c.want, m.clock.notBefore()); diff != "" {
				t.Errorf("the clock has come to (-want +got):\n%s", diff)
			}
		})
	}
}

// TestHeardIsKeptSeldom: entries of an hour that come at once, as to a member that was
// away, are not as many writes, and what is kept is true again soon after.
func TestHeardIsKeptSeldom(t *testing.T) {
	path := filepath.Join(t.TempDir(), heardFile)
	s := &steadyClock{time.Hour}
	m := s.started(path, "boot")
	m.clock.hear(1)
	first, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := range int64(3600) {
		m.clock.hear(n * 1000)
	}
	if now, err := os.Stat(path); err != nil || !os.SameFile(first, now) {
		t.Errorf("it was written again at once: %v", err)
	}
	s.at += keepEvery
	m.clock.hear(3_600_000)
	s.at += time.Minute
	if got := s.started(path, "boot").clock.notBefore(); got != 3_660_000 {
		t.Errorf("the clock has come to %d after a restart, want 3660000", got)
	}
}

// TestHeardByCopy: a member that gets another one's store, and no entry after it, goes on from where the clock of who led had
// come, also after a start between.
func TestHeardByCopy(t *testing.T) {
	const shown = 7_200_000
	dir := t.TempDir()
	opened := func(name string, at time.Duration) *Machine {
		c := store.Config{Dir: filepath.Join(dir, name)}
		return NewMachine(c, func() time.Duration { return at }, slog.New(slog.DiscardHandler))
	}
	closed := func(m *Machine) {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
	from := opened("a", time.Hour)
	defer closed(from)
	if err := store.Found(from.store); err != nil {
		t.Fatal(err)
	}
	if _, err := from.Begin(logThere{}); err != nil {
		t.Fatal(err)
	}
	var batch []byte
	if err := from.st.Lead(func(b []byte) error { batch = bytes.Clone(b); return nil }); err != nil {
		t.Fatal(err)
	}
	if said := from.Apply(&raft.Log{Index: 3, Term: 1, Data: newEntry(1, shown, batch)}); said != stored(3) {
		t.Fatal(said)
	}
	snap, err := from.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	var sent sentCopy
	if err := snap.Persist(&sent); err != nil {
		t.Fatal(err)
	}
	to := opened("b", time.Minute)
	if err := to.Restore(io.NopCloser(&sent.Buffer)); err != nil {
		t.Fatal(err)
	}
	if got := to.clock.notBefore(); got != shown {
		t.Errorf("the clock has come to %d, want %d", got, shown)
	}
	closed(to)
	again := opened("b", time.Second)
	defer closed(again)
	if _, err := again.Begin(logThere{}); err != nil {
		t.Fatal(err)
	}
	if got := again.clock.notBefore(); got != shown {
		t.Errorf("after a start the clock has come to %d, want %d", got, shown)
	}
}

// logThere is a log with three entries and no copy of a store.
type logThere struct{}

func (logThere) There() (bool, error)  { return true, nil }
func (logThere) Founding() bool        { return false }
func (logThere) Copy() (uint64, error) { return 0, nil }
func (logThere) Last() (uint64, error) { return 3, nil }

// sentCopy takes a copy of a store.
type sentCopy struct{ bytes.Buffer }

func (*sentCopy) Close() error  { return nil }
func (*sentCopy) Cancel() error { return nil }
func (*sentCopy) ID() string    { return "copy" }
