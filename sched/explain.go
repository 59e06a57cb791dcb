package sched

import (
	"cmp"
	"slices"

	"gbatch/sched/nodes"
)

// Estimate is when a job can be reckoned to start.
type Estimate struct {
	Now     bool         `json:"now"`     // it starts in this round
	Never   bool         `json:"never"`   // no node, as they are now, can ever hold it
	Known   bool         `json:"known"`   // At is set
	AtLeast bool         `json:"atLeast"` // more jobs are before it than were planned: not before At
	At      Time         `json:"at"`
	Ranks   []Allocation `json:"ranks,omitempty"` // where
	Reasons []Reason     `json:"reasons,omitempty"`
}

// Explanation is everything that keeps a waiting job from starting.
type Explanation struct {
	Job      JobID         `json:"job"`
	Waiting  bool          `json:"waiting"`  // false: there is no such job in the queue
	Estimate Estimate      `json:"estimate"` // its Reasons are all reasons at once, in the order of the codes
	Factors  Factors       `json:"factors"`
	Before   []JobID       `json:"before,omitempty"` // the first jobs that go before it and could use its nodes
	NBefore  int           `json:"nBefore"`          // how many there are among those that were looked at
	Nodes    []NodeVerdict `json:"nodes,omitempty"`  // every node, by name
}

// NodeVerdict is what a rank of the job finds on a node.
type NodeVerdict struct {
	Node     string `json:"node"`
	Code     Code   `json:"code"` // empty: there is room
	Text     string `json:"text"`
	FreeGPUs int64  `json:"freeMilliGpu"` // that satisfy its constraints, thousandths
	FreeCPU  int64  `json:"freeMilliCpu"`
	FreeMem  int64  `json:"freeMemMib"`
	At       Time   `json:"at,omitempty"` // when there is room by the plan; 0: not known
}

// maxPlanned bounds how many jobs are planned for one estimate.
const maxPlanned = 1000

// maxBefore bounds Explanation.Before.
const maxBefore = 10

// Explain runs the round that Decide would, and says why the job does not start
// in it and when it can be reckoned to.
func Explain(in Input, id JobID) Explanation {
	e := in.State.waiting[id]
	if e == nil {
		return Explanation{Job: id}
	}
	x := newExplainer(in)
	defer x.close()
	out := Explanation{Job: id, Waiting: true, Factors: x.factors(e)}
	out.Estimate = x.estimate(e)
	out.Before, out.NBefore = x.before(e)
	out.Nodes = x.nodes(e)
	return out
}

// WouldStart is the estimate for a job that does not wait yet. Its ID must not be
// in use; 0 stands for one after all others. A job that no node can hold comes
// back as Never, with the reasons to refuse it.
func WouldStart(in Input, j Job) (Estimate, error) {
	s := in.State
	if j.ID == 0 {
		j.ID = 1<<64 - 1
	}
	undo, err := s.pretend(j)
	if err != nil {
		return Estimate{}, err
	}
	defer undo()
	x := newExplainer(in)
	defer x.close()
	return x.estimate(s.waiting[j.ID]), nil
}

// pretend queues a job in place of the one of the same id, if there is one, and
// returns what takes it back.
func (s *State) pretend(j Job) (undo func(), err error) {
	old, had := s.Waiting(j.ID)
	var class, kind uint64
	if had {
		c := s.waiting[j.ID].class
		class, kind = c.id, c.kind.id
	}
	next, counts := s.nextClass, map[*nodes.Shape]int64{}
	for _, x := range s.index.Shapes { // a copy: order does not matter
		counts[x] = x.Submitted
	}
	if err := s.Enqueue(j); err != nil {
		return nil, err
	}
	return func() {
		s.Dequeue(j.ID)
		if had {
			_ = s.Enqueue(old) // it was queued before, so it is well formed
			c := s.waiting[j.ID].class
			c.id, c.kind.id = class, kind // plans know them by these
		}
		s.nextClass = next
		for x, n := range counts {
			x.Submitted = n
		}
	}, nil
}

// explainer is a round that is kept open to be asked about.
type explainer struct {
	*round
	placed map[JobID]Time // started or reserved
}

func newExplainer(in Input) *explainer {
	x := &explainer{round: newRound(in), placed: map[JobID]Time{}}
	x.run(in.Last)
	for _, st := range x.plan.Starts {
		x.placed[st.Job] = in.Now
	}
	for _, res := range x.plan.Reservations {
		x.placed[res.Job] = res.At
	}
	return x
}

// reservedFor says that the round gave the job a reservation: then it is over no
// limit, though it counts against limits itself.
func (x *explainer) reservedFor(id JobID) bool {
	return slices.ContainsFunc(x.plan.Reservations, func(r Reservation) bool { return r.Job == id })
}

func (x *explainer) estimate(e *entry) Estimate {
	k := e.class.kind
	for _, st := range x.plan.Starts {
		if st.Job == e.id {
			return Estimate{Now: true, Known: true, At: x.now, Ranks: st.Ranks}
		}
	}
	out := Estimate{Reasons: x.reasons(e)}
	if k.matching(x.round) < k.Shape.Ranks() {
		out.Never = true
		return out
	}
	if out.AtLeast = !x.planUntil(e); out.AtLeast || x.placed[e.id] == 0 {
		from := max(x.now, e.since, x.limitFree(e.class))
		at, spots := x.earliest(k, from)
		if spots == nil {
			return out
		}
		out.Known, out.At, out.Ranks = true, at, k.allocations(spots)
		return out
	}
	for _, res := range x.plan.Reservations {
		if res.Job == e.id {
			out.Known, out.At, out.Ranks = true, res.At, res.Ranks
		}
	}
	return out
}

// matching is how many nodes could hold a rank if nothing else were on them.
func (k *jobKind) matching(r *round) int {
	n := 0
	for _, nk := range r.s.index.Order {
		if k.Shape.On(nk).OK {
			for _, x := range nk.Nodes {
				if !x.Gone && k.Shape.Named(x) {
					n++
				}
			}
		}
	}
	return n
}

// planUntil goes on where the round ended and gives every job a place, by
// priority, until it comes to the one asked for. It returns false where that
// would be too many.
func (x *explainer) planUntil(e *entry) bool {
	if x.placed[e.id] != 0 {
		return true
	}
	x.queue.shortest = false
	x.fill()
	for n := 0; !x.queue.empty(); {
		q, c, first := x.queue.first()
		if first == e {
			return true
		}
		if _, done := x.placed[first.id]; done {
			x.queue.advance(x.round)
			continue
		}
		if _, over := x.overLimit(c); over || c.interactive {
			x.queue.dropClass(x.round)
			continue
		}
		if n++; n > maxPlanned {
			return false
		}
		at, spots := x.earliest(q.jobKind, x.now)
		if spots == nil {
			x.queue.dropKind()
			continue
		}
		x.book(placing{first, at, spots})
		x.placed[first.id] = at
		x.queue.advance(x.round)
	}
	return true
}

// limitFree is when as many jobs of those that count against a limit are
// reckoned to have ended as it takes to start one more; now if none is hit.
func (r *round) limitFree(c *class) Time {
	at := r.now
	for range len(r.s.running) + 1 {
		hit, over := r.overLimitAt(c, at)
		if !over {
			return at
		}
		next := Never
		for _, x := range r.s.running { // a minimum: order does not matter
			if t := x.tallies[hit.kind]; t != nil && t.tallyKey == hit.tallyKey {
				if end := r.expectedEnd(x.Run); end > at {
					next = min(next, end)
				}
			}
		}
		if next == Never {
			return at
		}
		at = next
	}
	return at
}

// overLimitAt is overLimit once the jobs that are reckoned to end by then have
// ended.
func (r *round) overLimitAt(c *class, at Time) (limitHit, bool) {
	var saved [tallyKinds]need
	var own [tallyKinds]*tally
	c.eachTally(func(t *tally) {
		own[t.kind], saved[t.kind] = t, need{running: t.running, milli: t.milli, gpuTime: r.gpuTime[t]}
	})
	for _, x := range r.s.running { // sums: order does not matter
		if r.expectedEnd(x.Run) > at {
			continue
		}
		for i, t := range own {
			if t != nil && x.tallies[i] == t {
				t.running--
				t.milli -= x.MilliGPU
				r.gpuTime[t] -= times(x.MilliGPU, int64(max(x.End-r.now, 0)))
			}
		}
	}
	hit, over := r.overLimit(c)
	for i, t := range own {
		if t != nil {
			t.running, t.milli, r.gpuTime[t] = saved[i].running, saved[i].milli, saved[i].gpuTime
		}
	}
	return hit, over
}

// before is the jobs that the plan lets go first and that could use the nodes
// of the job, in the order of the plan.
func (x *explainer) before(e *entry) ([]JobID, int) {
	nodes := map[string]bool{}
	for _, nk := range x.s.index.Order {
		if !e.class.shape.On(nk).OK {
			continue
		}
		for _, n := range nk.Nodes {
			nodes[n.Name] = e.class.shape.Named(n)
		}
	}
	var out []JobID
	count := 0
	see := func(id JobID, ranks []Allocation) {
		if id == e.id || !slices.ContainsFunc(ranks, func(a Allocation) bool { return nodes[a.Node] }) {
			return
		}
		if count++; count <= maxBefore {
			out = append(out, id)
		}
	}
	for _, st := range x.plan.Starts {
		see(st.Job, st.Ranks)
	}
	for _, res := range x.plan.Reservations {
		if res.Job == e.id {
			break
		}
		see(res.Job, res.Ranks)
	}
	return out, count
}

func compareCodes(a, b Reason) int { return cmp.Compare(codeOrder(a.Code), codeOrder(b.Code)) }

func codeOrder(c Code) int {
	return slices.Index([]Code{CodeNever, CodeLimit, CodeDependency, CodeBeginTime, CodeReservation, CodeResources, CodePriority}, c)
}
