package chaos

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// history is what to live through. Everything follows from it.
type history struct {
	seed        uint64
	nodes       int
	clients     int
	controllers int           // several; 0: one, without a common log
	lasts       time.Duration // faults come for so long; then all comes to rest
	faults      []fault       // in their order
	plant       *plant        // a bug that is put in; nil: none
}

// outcome is what came of a history.
type outcome struct {
	violation string // the first thing that does not hold; empty: all does
	trace     string // a hash over all that happened
	lines     []string
	took      time.Duration // simulated
	tally     tally
}

// tally counts what happened.
type tally struct {
	faults, seen                   map[string]int
	messages, lost, repeated       int
	submitted, ended, begun, steps int
	states                         map[string]bool
}

func newTally() tally {
	return tally{faults: map[string]int{}, seen: map[string]int{}, states: map[string]bool{}}
}

func (t *tally) add(o tally) {
	for k, n := range o.seen { // a sum: order does not matter
		t.seen[k] += n
	}
	for k, n := range o.faults { // a sum: order does not matter
		t.faults[k] += n
	}
	for k := range o.states { // into a set
		t.states[k] = true
	}
	t.messages, t.lost, t.repeated = t.messages+o.messages, t.lost+o.lost, t.repeated+o.repeated
	t.submitted, t.ended, t.begun, t.steps = t.submitted+o.submitted, t.ended+o.ended, t.begun+o.begun, t.steps+o.steps
}

// befell is how many faults there were.
func (t tally) befell() (all int) {
	for _, n := range t.faults { // a sum: order does not matter
		all += n
	}
	return all
}

// String is for people.
func (t tally) String() string {
	return fmt.Sprintf("%d faults (%s)\n%s\n%d messages lost and %d repeated, of %d\n%d jobs acknowledged, %d ended; %d programs began; %d steps of the controller\nends: %s",
		t.befell(), list(t.faults), list(t.seen), t.lost, t.repeated, t.messages, t.submitted, t.ended, t.begun, t.steps, strings.Join(slices.Sorted(maps.Keys(t.states)), ", "))
}

func list(counts map[string]int) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, fmt.Sprintf("%s: %d", k, counts[k]))
	}
	return strings.Join(out, ", ")
}

// world is a history under way.
type world struct {
	history
	began   time.Time
	log     *slog.Logger
	dir     string
	over    context.CancelFunc // ends it, as something does not hold
	ctx     context.Context
	wg      sync.WaitGroup // all goroutines but those of processes
	events  events
	audit   *audit
	ctl     *machineOfController // the only controller; nil: there are several
	members []*member
	ledIn   atomic.Uint64 // newest term in which a member began to lead

	settling chan struct{} // held by who waits for all others
	operator chan struct{} // held by what the operator of several controllers does
	newest   atomic.Int64  // program of theirs
	stirred  atomic.Int64  // until then clients ask a lot
	nodes_   []*machine
	net      *network
}

// live runs a history to its end.
func live(t *testing.T, h history) (out outcome) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{history: h, began: time.Now(), log: slog.New(slog.NewTextHandler(io.Discard, nil)), dir: t.TempDir(), operator: make(chan struct{}, 1), settling: make(chan struct{}, 1)}
		if h.plant == nil {
			w.plant = &plant{}
		}
		w.ctx, w.over = context.WithCancel(t.Context())
		defer w.over()
		w.audit = newAudit(w)
		w.net = &network{w: w}
		w.run()
		out = w.outcome()
	})
	return out
}

func (w *world) run() {
	w.begin()
	for i := range w.history.nodes {
		m := newMachine(w, fmt.Sprintf("n%d", i))
		w.nodes_ = append(w.nodes_, m)
		m.boot()
	}
	var clients sync.WaitGroup
	ctx, leave := context.WithTimeout(w.ctx, w.lasts)
	defer leave()
	for i := range w.clients {
		clients.Go(func() { (&client{w: w, name: fmt.Sprintf("user%d", i), id: i}).run(ctx) })
	}
	w.wg.Go(w.givesUp)
	for _, f := range w.faults {
		f := f
		w.wg.Go(func() {
			if w.sleep(f.at) == nil {
				w.befall(f)
			}
		})
	}
	<-ctx.Done()
	clients.Wait()
	w.rest()
	w.alike()
	w.audit.final()
	w.over()
	for _, m := range w.nodes_ {
		m.shut()
	}
	w.end()
}

// begin starts the controllers.
func (w *world) begin() {
	if w.controllers == 0 {
		w.ctl = newController(w)
		w.ctl.start()
		return
	}
	w.members = found(w)
	for _, m := range w.members {
		m.start()
	}
}

// end kills them, and waits for all.
func (w *world) end() {
	if w.ctl != nil {
		w.ctl.stop(0)
		w.wg.Wait()
		w.ctl.closed.Wait()
		return
	}
	for _, m := range w.members {
		m.stop(0)
	}
	w.wg.Wait()
	for _, m := range w.members {
		m.closed.Wait()
	}
}

// rest waits until every job has ended, with nothing in the way any more.
func (w *world) rest() {
	const patience = 2 * time.Hour
	for until := time.Now().Add(patience); w.ctx.Err() == nil; {
		left := w.unended()
		if left == "" {
			return
		}
		if time.Now().After(until) {
			w.audit.violation("%s", left)
			return
		}
		_ = w.sleep(5 * time.Second)
	}
}

// sleep waits, or until the history is over.
func (w *world) sleep(d time.Duration) error { return sleep(w.ctx, d) }

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// settle waits until all others have done what they do at this moment, so that it does not matter in which order they are run.
// It must not be called with a lock that somebody may wait for.
func (w *world) settle() {
	w.settling <- struct{}{} // one at a time may wait
	synctest.Wait()
	<-w.settling
}

// settled is a context for the loop of a controller, which looks whether it has ended before it takes what is there for its next
// turn: that is all that came at this moment.
type settled struct {
	context.Context
	w *world
}

func (s settled) Err() error {
	s.w.settle()
	return s.Context.Err()
}

// now is how long the history has lasted.
func (w *world) now() time.Duration { return time.Since(w.began) }

// draw is chance for who asks, at this moment. It depends on nothing that another one drew.
func (w *world) draw(who ...any) *rand.Rand {
	var room [128]byte
	text := strconv.AppendInt(words(room[:0], who), w.now().Nanoseconds(), 10)
	h := fnv.New64a()
	h.Write(text)
	return rand.New(rand.NewPCG(w.seed, h.Sum64()))
}

// words is fmt.Append, which is slow for how often something is drawn.
func words(text []byte, of []any) []byte {
	for i, a := range of {
		s, isText := a.(string)
		if i > 0 && !isText {
			if _, after := of[i-1].(string); !after {
				text = append(text, ' ')
			}
		}
		switch v := a.(type) {
		case string:
			text = append(text, s...)
		case int:
			text = strconv.AppendInt(text, int64(v), 10)
		default:
			text = fmt.Append(text, a)
		}
	}
	return text
}

// between is a length of time drawn between two.
func between(r *rand.Rand, low, high time.Duration) time.Duration {
	return low + time.Duration(r.Int64N(int64(high-low)+1))
}

// events is what happened.
type events struct {
	mu   sync.Mutex
	list []event
}

type event struct {
	at   time.Duration
	text string
}

// note adds to what happened.
func (w *world) note(format string, a ...any) {
	w.events.mu.Lock()
	defer w.events.mu.Unlock()
	w.events.list = append(w.events.list, event{w.now(), fmt.Sprintf(format, a...)})
}

// trace adds to what happened what is seldom looked at.
func (w *world) trace(format string, a ...any) {
	if *traced {
		w.note(format, a...)
	}
}

// outcome puts in order what happened: of what happened at one moment, the order is nobody's.
func (w *world) outcome() outcome {
	w.events.mu.Lock()
	defer w.events.mu.Unlock()
	slices.SortStableFunc(w.events.list, func(a, b event) int { return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.text, b.text)) })
	h := sha256.New()
	out := outcome{took: w.now(), tally: w.audit.counted()}
	for _, e := range w.events.list {
		line := fmt.Sprintf("%12s %s", e.at, e.text)
		fmt.Fprintln(h, line)
		out.lines = append(out.lines, line)
	}
	out.trace, out.violation = fmt.Sprintf("%x", h.Sum(nil)), w.audit.first
	return out
}
