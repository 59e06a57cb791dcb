package replica

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/internal/store"
)

// member is one controller's replica, without the controller.
type member struct {
	t       *testing.T
	name    string
	dir     string
	address string
	nowMS   int64
	patient time.Duration          // 0: a second
	copies  int                    // see Config.Copy
	log     *slog.Logger           // nil: as GBATCH_TEST_LOG says
	unknown atomic.Pointer[string] // an address whose name cannot be looked up
	plug    plug
	r       *Replica
}

func newMember(t *testing.T, name string) *member {
	m := &member{t: t, name: name, dir: t.TempDir(), address: "127.0.0.1:0", nowMS: 1_800_000_000_000}
	return m
}

// joins prepares a member that gets its store from the others.
func (m *member) joins() *member {
	if err := MakeDir(filepath.Join(m.dir, "log"), 0); err != nil {
		m.t.Fatal(err)
	}
	return m
}

func (m *member) start() {
	m.t.Helper()
	ln, err := net.Listen("tcp", m.address)
	if err != nil {
		m.t.Fatal(err)
	}
	m.address = ln.Addr().String()
	if m.r, err = Open(m.config(ln)); err != nil {
		m.t.Fatal(err)
	}
}

func (m *member) config(ln net.Listener) Config {
	log := slog.New(slog.DiscardHandler)
	if os.Getenv("GBATCH_TEST_LOG") != "" {
		log = slog.New(slog.NewTextHandler(m.t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	if m.log != nil {
		log = m.log
	}
	return Config{
		Name: m.name, Address: m.address, Dir: filepath.Join(m.dir, "log"), Store: store.Config{Dir: filepath.Join(m.dir, "store")},
		Listener: plugged{ln, &m.plug}, Patience: cmp.Or(m.patient, time.Second), Copy: m.copies, NowMS: func() int64 { return m.nowMS }, Log: log,
		Dial: func(address string, timeout time.Duration) (net.Conn, error) {
			if bad := m.unknown.Load(); bad != nil && *bad == address {
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "server misbehaving", Name: address, IsTemporary: true}}
			}
			return m.plug.keep(net.DialTimeout("tcp", address, timeout))
		},
	}
}

func (m *member) stop() {
	m.t.Helper()
	if m.r == nil {
		return
	}
	if err := m.r.Close(); err != nil {
		m.t.Error(err)
	}
	m.r = nil
}

// until polls, as elections take their time on a machine under load.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("%s: not within a minute", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// leader waits until one of the members leads and has its store.
func leader(t *testing.T, all ...*member) (*member, *Lead) {
	t.Helper()
	var found *member
	var lead *Lead
	until(t, "a leader", func() bool {
		for _, m := range all {
			if m.r == nil || m.r.Leader() != m.name {
				continue
			}
			var err error
			if lead, err = m.r.Ready(); err == nil && lead.Begin() == nil {
				found = m
				return true
			}
		}
		return false
	})
	return found, lead
}

// four are members of which the first leads, and the others do not run yet.
func four(t *testing.T) (a, b, c, d *member, all []*member) {
	a, b, c, d = newMember(t, "a"), newMember(t, "b").joins(), newMember(t, "c").joins(), newMember(t, "d").joins()
	a.start()
	leader(t, a)
	all = []*member{a, b, c, d}
	t.Cleanup(func() {
		for _, m := range all {
			m.stop()
		}
	})
	return a, b, c, d, all
}

// takesPart has a member that runs take part, whoever leads: on a machine under load that may change.
func takesPart(t *testing.T, m *member, all ...*member) {
	t.Helper()
	until(t, m.name+" takes part", func() bool {
		l, _ := leader(t, all...)
		return l.r.Add(Member{Name: m.name, Address: m.address, Voter: true}) == nil
	})
}

func jobRecord(n int) state.Record {
	return state.Record{Kind: state.KindStored, Name: fmt.Sprintf("job%04d", n), Job: job.Number(n), Value: fmt.Appendf(nil, "value %d", n)}
}

// has says which of the first n records a member's store has.
func (m *member) has(n int) int {
	st := m.r.fsm.current()
	if st == nil {
		return 0
	}
	count := 0
	for i := range n {
		r := jobRecord(i)
		if v, ok, err := st.Get(r); err == nil && ok && string(v) == string(r.Value) {
			count++
		}
	}
	return count
}

// TestNothingIsLost: what was committed while a majority was there is on every member,
// whoever dies and whoever joins.
func TestNothingIsLost(t *testing.T) {
	t.Parallel()
	a := newMember(t, "a")
	a.start()
	defer func() { a.stop() }()
	_, lead := leader(t, a)
	all := []*member{a}
	n := 0
	commit := func(more int) {
		t.Helper()
		for more > 0 {
			err := lead.Store.Commit([]state.Record{jobRecord(n)})
			switch {
			case errors.Is(err, ErrLost), errors.Is(err, store.ErrFollows): // the machine was too busy
				_, lead = leader(t, all...)
				continue
			case err != nil:
				t.Fatal(err)
			}
			n, more = n+1, more-1
		}
	}
	commit(20) // before the others join: they get the store

	b, c := newMember(t, "b").joins(), newMember(t, "c").joins()
	for _, m := range []*member{b, c} {
		m.start()
		defer func() { m.stop() }()
		takesPart(t, m, a, b, c)
	}
	all = append(all, b, c)
	commit(20)
	same := func() {
		t.Helper()
		for _, m := range all {
			if m.r != nil {
				until(t, "all records on "+m.name, func() bool { return m.has(n) == n })
			}
		}
	}
	same()

	for range 3 {
		old, last := leader(t, all...)
		begun := last.Store.Epoch()
		old.stop()
		_, lead = leader(t, all...)
		if now := lead.Store.Epoch(); now <= begun {
			t.Errorf("start %d follows on start %d: events of a new leader would have the ids of old ones", now, begun)
		}
		commit(10)
		old.start()
		same()
	}
	// A member has the records as soon as a first try is applied: what comes of one that was tried
	// again, as the machine was too busy, may come to it after that.
	until(t, "the same number of commits on all", func() bool {
		commits := func(m *member) uint64 { return m.r.fsm.current().Commits() }
		return commits(a) == commits(b) && commits(b) == commits(c)
	})
}

// TestMinority: a member that is alone of three stores nothing and says so.
func TestMinority(t *testing.T) {
	t.Parallel()
	a, b, c := newMember(t, "a"), newMember(t, "b").joins(), newMember(t, "c").joins()
	a.start()
	defer func() { a.stop() }()
	_, lead := leader(t, a)
	for _, m := range []*member{b, c} {
		m.start()
		defer func() { m.stop() }()
		takesPart(t, m, a, b, c)
	}
	if err := lead.Store.Commit([]state.Record{jobRecord(0)}); err != nil {
		t.Fatal(err)
	}
	until(t, "the store on b", func() bool { return b.has(1) == 1 })
	b.stop()
	c.stop()
	if err := lead.Store.Commit([]state.Record{jobRecord(1)}); err == nil {
		t.Error("one of three has stored something alone")
	}
	if err := lead.Confirm(); err == nil {
		t.Error("one of three takes itself for the leader")
	}
	b.start()
	_, lead = leader(t, a, b)
	if err := lead.Store.Commit([]state.Record{jobRecord(2)}); err != nil {
		t.Fatal(err)
	}
}

// open is Open where an error is expected.
func (m *member) open() error {
	m.t.Helper()
	ln, err := net.Listen("tcp", m.address)
	if err != nil {
		m.t.Fatal(err)
	}
	c := m.config(ln)
	r, err := Open(c)
	if err == nil {
		return r.Close()
	}
	return err
}

// TestOneSite: a member whose store and log do not belong together begins no site of its own, whatever
// was done to its directory; where that is wanted, it takes the store along.
func TestOneSite(t *testing.T) {
	t.Parallel()
	a := newMember(t, "a")
	storeDir, logDir := filepath.Join(a.dir, "store"), filepath.Join(a.dir, "log")
	a.start()
	_, lead := leader(t, a)
	if err := lead.Store.Commit([]state.Record{jobRecord(0)}); err != nil {
		t.Fatal(err)
	}
	a.stop()

	if err := os.Rename(logDir, logDir+".away"); err != nil {
		t.Fatal(err)
	}
	if err := a.open(); err == nil || !strings.Contains(err.Error(), "it is gone") {
		t.Errorf("without its log: %v", err)
	}
	if err := os.Rename(logDir+".away", logDir); err != nil {
		t.Fatal(err)
	}

	// A lost store comes back from the copy and the log.
	if err := errors.Join(os.RemoveAll(storeDir), os.Remove(storeDir+store.MarkSuffix)); err != nil {
		t.Fatal(err)
	}
	a.start()
	_, lead = leader(t, a)
	if got := a.has(1); got != 1 {
		t.Error("the record of a lost store did not come back")
	}
	if err := lead.Store.Commit([]state.Record{jobRecord(1)}); err != nil {
		t.Fatal(err)
	}
	a.stop()

	alone, err := store.Open(store.Config{Dir: storeDir})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(alone.Commit([]state.Record{jobRecord(2)}), alone.Close()); err != nil {
		t.Fatal(err)
	}
	if err := a.open(); err == nil || !strings.Contains(err.Error(), "by a controller alone") {
		t.Errorf("after it ran alone: %v", err)
	}
	if err := os.RemoveAll(logDir); err != nil {
		t.Fatal(err)
	}
	a.start()
	defer a.stop()
	_, lead = leader(t, a)
	if err := lead.Store.Commit([]state.Record{jobRecord(3)}); err != nil {
		t.Fatal(err)
	}
	if got := a.has(4); got != 4 {
		t.Errorf("%d of 4 records", got)
	}
}

// TestFoundingBrokenOff: a first member that died while it became one begins anew.
func TestFoundingBrokenOff(t *testing.T) {
	t.Parallel()
	a := newMember(t, "a")
	if err := errors.Join(MakeDir(filepath.Join(a.dir, "log")+founding, 0), store.Found(store.Config{Dir: filepath.Join(a.dir, "store")})); err != nil {
		t.Fatal(err)
	}
	a.start()
	defer a.stop()
	_, lead := leader(t, a)
	if err := lead.Store.Commit([]state.Record{jobRecord(0)}); err != nil {
		t.Fatal(err)
	}
}
