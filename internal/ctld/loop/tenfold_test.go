package loop

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/uuid"

	"gbatch/internal/control"
	"gbatch/internal/ctld/meter"
	"gbatch/internal/ctld/site"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/internal/store"
	"gbatch/sched"
)

// commitWork is what the commit of a turn takes, in submissions: a few milliseconds
// on a disk, of some ten microseconds each.
const commitWork = 100

// TestTenfoldNeighbour counts what the loop does while a request waits: the 99th
// percentile of the others' at most doubles when one user has ten times as many. Were
// all of them one user to the inbox it would more than double.
func TestTenfoldNeighbour(t *testing.T) {
	alike := map[string]int{"ann": 10, "bob": 10, "eve": 10, "kim": 10}
	tenfold := map[string]int{"ann": 100, "bob": 10, "eve": 10, "kim": 10}
	own := func(user string) string { return user }
	before, after := waits(t, alike, own), waits(t, tenfold, own)
	t.Logf("work while one waits: %v, and %v beside ten times as many", before, after)
	for kind := range before {
		if after[kind] > 2*before[kind] {
			t.Errorf("%s: %d submissions' work is done while one waits, and %d beside a user with ten times as many", kind, before[kind], after[kind])
		}
	}
	all := func(string) string { return "" }
	before, after = waits(t, alike, all), waits(t, tenfold, all)
	for kind := range before {
		if after[kind] <= 2*before[kind] {
			t.Errorf("%s: without turns of users it is %d and %d: this test would not see it", kind, before[kind], after[kind])
		}
	}
}

// waits is the 99th percentile, of all but ann, of the work that is done from when a
// request is sent until it is answered. Each user has so many programs that submit a
// job and ask a question by turns, each as soon as the one before was answered.
func waits(t *testing.T, programs map[string]int, turnOf func(user string) string) map[string]int {
	t.Helper()
	l := quietLoop(t)
	var all []*program
	for _, user := range []string{"ann", "bob", "eve", "kim"} {
		for range programs[user] {
			all = append(all, &program{user: user, asks: len(all)%2 == 0})
		}
	}
	work, took := 0, map[string][]int{}
	for range 200 {
		for _, p := range all {
			if p.reply == nil {
				p.send(t, l, turnOf(p.user), work)
			}
		}
		batch := l.inbox.take()
		for _, r := range batch {
			work += r.cost
		}
		if err := l.turn(batch); err != nil {
			t.Fatal(err)
		}
		work += commitWork
		for _, p := range all {
			if kind, ok := p.answered(t); ok && p.user != "ann" {
				took[kind] = append(took[kind], work-p.sent)
			}
		}
	}
	p99 := map[string]int{}
	for kind, list := range took {
		slices.Sort(list)
		p99[kind] = list[len(list)*99/100]
	}
	return p99
}

// program sends one request after the other.
type program struct {
	user  string
	asks  bool // the request under way is a question
	sent  int  // the work that was done by then
	reply chan error
}

func (p *program) send(t *testing.T, l *Loop, turn string, work int) {
	p.reply, p.sent = make(chan error, 1), work
	r := request{cost: costAsk, reply: p.reply}
	if p.asks {
		r.ask = func(*control.Controller, sched.Time) {}
	} else {
		ev := control.Submit{UUID: uuid.New(), User: p.user, Project: "default", Spec: &job.Spec{}, Document: []byte("{}"), Request: &state.Request{Shape: &sched.Shape{MilliCPU: 1000}, Limit: sched.Hour}}
		r.submit, r.cost = true, costOf(ev)
		r.apply = func(c *control.Controller, now sched.Time) applied {
			_, refusal, eff := control.Apply(c, now, ev)
			if refusal != nil {
				t.Error(refusal)
			}
			return applied{effects: eff, refusal: refusal}
		}
	}
	l.inbox.put(turn, r.cost, r)
}

// answered says whether the request is, and what it was.
func (p *program) answered(t *testing.T) (kind string, ok bool) {
	select {
	case err := <-p.reply:
		if err != nil {
			t.Error(err)
		}
	default:
		return "", false
	}
	kind = map[bool]string{true: "a question", false: "a submission"}[p.asks]
	p.reply, p.asks = nil, !p.asks
	return kind, true
}

// quietLoop is a loop without nodes that nobody runs: turns are the test's.
func quietLoop(t *testing.T) *Loop {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	st, err := store.Open(store.Config{Dir: "db", FS: vfs.NewMem(), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	rules, err := site.Default().Rules()
	if err != nil {
		t.Fatal(err)
	}
	ctl, err := control.New(rules, 1)
	if err != nil {
		t.Fatal(err)
	}
	clock := newClock(func() (time.Time, time.Duration) { return time.UnixMilli(0).Add(time.Hour), time.Hour }, log)
	if err := ctl.Loaded(clock.Now()); err != nil {
		t.Fatal(err)
	}
	l, err := New(Config{Controller: ctl, Store: st, Clock: clock, Meters: meter.New(), Reserve: func() uint64 { return 0 }, Log: log}, clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	return l
}
