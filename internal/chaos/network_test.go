package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"gbatch/internal/api"
)

// network is what lies between the controller and all others.
type network struct {
	w *world

	mu    sync.Mutex
	bad   int              // faults that delay, lose, repeat and refuse whatever is sent
	cut   map[string][]int // by who is cut off: faults by which requests, and answers, are lost
	old   map[string]int   // nodes to which old answers come again
	first map[string][]byte
	alone map[string]bool // nodes that these alone answer: nothing of theirs comes to the controller

	small map[string][]*glitch // by who sends; those that are under way
}

// glitch is a small fault under way.
type glitch struct {
	fault
	met bool
}

// glitch has a small fault happen.
func (w *world) glitch(f fault) {
	if f.kind == "slow syncs" {
		d := w.members[f.on].slowed(f.by)
		before := d.syncs.Load()
		_ = w.sleep(f.lasts)
		w.members[f.on].slowed(-f.by)
		if d.syncs.Load() > before {
			w.audit.fault(f.kind)
		}
		return
	}
	n, who, g := w.net, w.part(f), &glitch{fault: f}
	n.mu.Lock()
	if n.small == nil {
		n.small = map[string][]*glitch{}
	}
	n.small[who] = append(n.small[who], g)
	n.mu.Unlock()
	_ = w.sleep(f.lasts)
	n.mu.Lock()
	n.small[who] = slices.DeleteFunc(n.small[who], func(o *glitch) bool { return o == g })
	met := g.met
	n.mu.Unlock()
	if met {
		w.audit.fault(f.kind)
	}
}

// meets says what small faults do to what somebody sends.
func (n *network) meets(who string, r *rand.Rand) (lost, twice bool, late time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, g := range n.small[who] {
		if r.IntN(2) == 0 {
			continue
		}
		g.met = true
		switch g.kind {
		case "lose a few messages":
			lost = true
		case "repeat a few messages":
			twice = true
		default:
			late += between(r, 0, g.by)
		}
	}
	return lost, twice, late
}

// disturb has a fault of the network happen, for as long as it lasts.
func (n *network) disturb(f fault) {
	n.add(f, 1)
	_ = n.w.sleep(f.lasts)
	n.add(f, -1)
}

func (n *network) add(f fault, by int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cut == nil {
		n.cut, n.old, n.first, n.alone = map[string][]int{}, map[string]int{}, map[string][]byte{}, map[string]bool{}
	}
	if f.on < 0 {
		n.bad += by
		return
	}
	who := n.w.part(f)
	if n.cut[who] == nil {
		n.cut[who] = make([]int, 2)
	}
	switch f.kind {
	case "old answers":
		n.old[who] += by
		delete(n.first, who)
		n.alone[who] = by > 0 && f.lasts > time.Minute
	case "cut a node off", "cut a controller off":
		n.cut[who][0] += by
		n.cut[who][1] += by
	case "lose a node's requests", "lose what a controller sends":
		n.cut[who][0] += by
	case "lose answers to a node", "lose what is sent to a controller":
		n.cut[who][1] += by
	}
}

// lost says whether what somebody sends now, or what is answered, does not arrive.
func (n *network) lost(who string, answer int, r *rand.Rand) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	gone := n.bad > 0 && r.IntN(4) == 0
	if c := n.cut[who]; c != nil && c[answer] > 0 {
		gone = true
	}
	n.w.audit.message(gone)
	return gone
}

func (n *network) isBad() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.bad > 0
}

// betweenMembers is delay of what controllers send each other: a network that is bad is not so for seconds, or nobody would lead.
func (n *network) betweenMembers(r *rand.Rand) time.Duration {
	if n.isBad() && r.IntN(4) == 0 {
		return between(r, 0, time.Second)
	}
	return between(r, 100*time.Microsecond, 3*time.Millisecond)
}

// delay is how long a message takes now.
func (n *network) delay(r *rand.Rand) time.Duration {
	if n.isBad() && r.IntN(3) == 0 {
		return between(r, 0, 8*time.Second)
	}
	return between(r, 100*time.Microsecond, 3*time.Millisecond)
}

// Errors as those who call see them.
var (
	errSilence = errors.New("no answer came in time")
	errBad     = errors.New("502 bad gateway")
)

// silence is how long a caller waits, beyond how long the answer may take.
const silence = 10 * time.Second

// request is what somebody sends. Two of one sender at one moment are told apart by their texts.
type request struct {
	who  string
	hold time.Duration // how long the answer may take
	text string
}

// String is short, for people.
func (q request) String() string {
	h := fnv.New32a()
	_, _ = io.WriteString(h, q.text)
	return fmt.Sprintf("%08x within %s", h.Sum32(), q.hold)
}

// call sends a request and gives its answer, as the network has it: it may arrive twice or not at all, and so
// may the answer. Serve is run in a process of the controller.
func call[A any](ctx context.Context, n *network, q request, serve func(context.Context, *process) (A, error)) (answer A, err error) {
	who, hold := q.who, q.hold
	r := n.w.draw("call", q.who, q.hold > 0, q.text)
	gone, twice, late := n.meets(who, r)
	n.w.trace("%s asks %s, lost %t, twice %t, later by %s", who, q, gone, twice, late)
	if err := sleep(ctx, n.delay(r)+late); err != nil {
		return answer, err
	}
	if n.isBad() && r.IntN(8) == 0 {
		return answer, errBad // something between refuses it
	}
	if n.lost(who, 0, r) || gone {
		return answer, errors.Join(sleep(ctx, hold+silence), errSilence)
	}
	p := n.w.reached(ctx, r)
	if p == nil {
		return answer, errDown
	}
	if twice || n.isBad() && r.IntN(4) == 0 {
		later := n.delay(r)
		n.w.audit.again()
		n.w.wg.Go(func() { // the same request, once more
			if n.w.sleep(later) != nil {
				return
			}
			if p := n.w.reached(n.w.ctx, n.w.draw("again", who, q.text)); p != nil {
				ctx, end := p.bounded(n.w.ctx)
				defer end()
				_, _ = serve(ctx, p)
			}
		})
	}
	cx, end := p.bounded(ctx)
	defer end()
	answer, err = serve(cx, p)
	if p.ctx.Err() != nil || stopping(err) {
		var none A
		return none, errDown // who would have answered is dead, or dies at this moment
	}
	n.w.trace("%s is answered to %s: %v", who, q, err)
	r = n.w.draw("answer", who, hold > 0, q.text)
	if n.lost(who, 1, r) {
		var none A
		return none, errors.Join(sleep(ctx, silence), errSilence)
	}
	return answer, errors.Join(sleep(ctx, n.delay(r)), err)
}

// stopping says that the answer is of a process that ends.
func stopping(err error) bool {
	var e *api.Error
	return errors.As(err, &e) && e.Code == api.CodeUnavailable
}

// NodeSync is the wire of a node's exchange.
func (m *machine) NodeSync(ctx context.Context, name string, req *api.SyncRequest) (*api.SyncResponse, error) {
	w := m.w
	m.mu.Lock()
	if w.plant.report != nil {
		w.plant.report(req)
	}
	m.mu.Unlock()
	body, err := json.Marshal(req)
	if err != nil {
		return nil, err
	}
	sent := time.Now()
	text, err := m.ask(ctx, name, req, body)
	if err != nil {
		return nil, err
	}
	var out api.SyncResponse
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, err
	}
	if w.plant.answer != nil {
		w.plant.answer(req, &out, time.Since(sent))
	}
	return &out, nil
}

// ask is what comes back to a node.
func (m *machine) ask(ctx context.Context, name string, req *api.SyncRequest, body []byte) ([]byte, error) {
	if text := m.w.net.instead(name); text != nil {
		return text, sleep(ctx, time.Second)
	}
	hold := time.Duration(req.WaitMS) * time.Millisecond
	resp, err := call(ctx, m.w.net, request{name, hold, drawn(*req)}, func(ctx context.Context, p *process) (*api.SyncResponse, error) {
		return p.sync(ctx, name, body)
	})
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(resp)
	if err != nil {
		return nil, err
	}
	return m.w.net.again(name, text), nil
}

// drawn tells requests of a node from each other, by what is no chance of the production's.
func drawn(req api.SyncRequest) string {
	req.Instance, req.Records, req.Nonce = "", "", 0
	text, _ := json.Marshal(req)
	return string(text)
}

func (m *machine) JoinNode(context.Context, string, string, []byte) ([]byte, error) {
	return nil, errors.New("nodes of the simulation have no certificates")
}

func (m *machine) RenewNode(context.Context, string, []byte) ([]byte, error) {
	return m.JoinNode(nil, "", "", nil) //nolint:staticcheck // it has no use for a context
}

// instead is an old answer where what repeats them does not even ask; nil: it does.
func (n *network) instead(who string) []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.old[who] == 0 || !n.alone[who] {
		return nil
	}
	return n.first[who]
}

// again is an old answer in place of the one that came, where something repeats them: sometimes.
func (n *network) again(who string, text []byte) []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.old[who] == 0:
	case n.first[who] == nil:
		n.first[who] = text
	case n.w.draw("old", who).IntN(2) == 0:
		return n.first[who]
	}
	return text
}
