package sched

import (
	"cmp"
	"slices"

	"gbatch/sched/nodes"
)

// Estimate is when a job can be reckoned to start.
type Estimate struct {
	Now     bool         `json:"now"`     // it starts in this round
	Never   bool         `json:"never"`   // no node, as they are now, can ever hold it, or it is beyond a limit by itself
	Known   bool         `json:"known"`   // At is set
	AtLeast bool         `json:"atLeast"` // more jobs are before it than were planned: not before At
	At      Time         `json:"at"`
	Ranks   []Allocation `json:"ranks,omitempty"` // where
	Limit   Time         `json:"limit,omitempty"` // as of Start
	Reasons []Reason     `json:"reasons,omitempty"`
}

// Explanation is everything that keeps a waiting job from starting.
type Explanation struct {
	Job      JobID        `json:"job"`
	Waiting  bool         `json:"waiting"`  // false: there is no such job in the queue
	Estimate Estimate     `json:"estimate"` // its Reasons are all reasons at once, in the order of the codes
	Factors  Factors      `json:"factors"`
	Before   []JobID      `json:"before,omitempty"` // the first of the jobs before it, by Position, that have a place in the plan on nodes that it could use
	NBefore  int          `json:"nBefore"`          // how many there are
	Nodes    []NodeReason `json:"nodes,omitempty"`  // every node, by name
}

// NodeReason is what a rank of the job finds on a node.
type NodeReason struct {
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
	ex := newExplainer(in)
	defer ex.close()
	out := Explanation{Job: id, Waiting: true, Factors: ex.ranking.factors(e)}
	out.Estimate, out.Before, out.NBefore = ex.explain(e)
	out.Nodes = ex.nodes(e)
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
	ex := newExplainer(in)
	defer ex.close()
	est, _, _ := ex.explain(s.waiting[j.ID])
	return est, nil
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
	for _, shape := range s.index.Shapes { // a copy: order does not matter
		counts[shape] = shape.Submitted
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
		for shape, n := range counts {
			shape.Submitted = n
		}
	}, nil
}

// explainer is a round that is kept open to be asked about.
type explainer struct {
	*round
	placed map[JobID]Time // started or reserved
}

func newExplainer(in Input) *explainer {
	ex := &explainer{round: newRound(in), placed: map[JobID]Time{}}
	ex.run(in.Last)
	for _, st := range ex.plan.Starts {
		ex.placed[st.Job] = in.Now
	}
	for _, res := range ex.plan.Reservations {
		ex.placed[res.Job] = res.At
	}
	return ex
}

// reservedFor says that the round gave the job a reservation: then it is over no
// limit, though it counts against limits itself.
func (ex *explainer) reservedFor(id JobID) bool {
	return slices.ContainsFunc(ex.plan.Reservations, func(r Reservation) bool { return r.Job == id })
}

// explain is the estimate, and the jobs before it by the plan that it was made of:
// what the reasons say of them is the same.
func (ex *explainer) explain(e *entry) (Estimate, []JobID, int) {
	est := ex.estimate(e)
	ids, n := ex.before(e)
	for i := range est.Reasons {
		if est.Reasons[i].Code == CodePriority {
			est.Reasons[i].Text = priorityText(ids, n)
		}
	}
	return est, ids, n
}

func (ex *explainer) estimate(e *entry) Estimate {
	kind := e.class.kind
	for _, st := range ex.plan.Starts {
		if st.Job == e.id {
			return Estimate{Now: true, Known: true, At: ex.now, Ranks: st.Ranks, Limit: st.Limit}
		}
	}
	out := Estimate{Reasons: ex.reasons(e)}
	hit, _ := ex.usage.overLimit(e.class)
	if out.Never = hit.never || ex.calendar.lacking(kind).code == CodeNever || kind.matching(ex.s.index) < kind.Shape.Ranks(); out.Never {
		return out
	}
	if out.AtLeast = !ex.planUntil(e); out.AtLeast || ex.placed[e.id] == 0 {
		free := ex.limitFree(e.class)
		if free == Never {
			return out // no end of a job is in sight that would help
		}
		from := max(ex.now, e.since, free)
		p := ex.soonest(e, from)
		if p.spots == nil {
			return out
		}
		out.AtLeast = out.AtLeast || free > ex.now && ex.othersBefore(e)
		out.Known, out.At, out.Ranks, out.Limit = true, p.at, kind.allocations(p.spots), p.kind.granted(e.class)
		return out
	}
	for _, res := range ex.plan.Reservations {
		if res.Job == e.id {
			out.Known, out.At, out.Ranks, out.Limit = true, res.At, res.Ranks, res.Limit
		}
	}
	return out
}

// matching is how many nodes could hold a rank if nothing else were on them, in the
// partition where there are most.
func (kind *jobKind) matching(index *nodes.Index) (most int) {
	for _, shape := range kind.Shape.Ways {
		most = max(most, index.Matching(shape))
	}
	return most
}

// planUntil goes on where the round ended and gives every job a place, by
// priority, until it comes to the one asked for. It returns false where that
// would be too many.
func (ex *explainer) planUntil(e *entry) bool {
	if ex.placed[e.id] != 0 {
		return true
	}
	ex.queue.shortest = false
	ex.fill()
	for n := 0; !ex.queue.empty(); {
		_, c, first := ex.queue.first()
		if first == e {
			return true
		}
		if _, done := ex.placed[first.id]; done {
			ex.queue.advance(ex.round)
			continue
		}
		if _, over := ex.usage.overLimit(c); over || c.interactive {
			ex.queue.dropClass(ex.round)
			continue
		}
		if n++; n > maxPlanned {
			return false
		}
		p := ex.soonest(first, ex.now)
		if p.spots == nil {
			ex.queue.dropKind()
			continue
		}
		ex.book(p)
		ex.placed[first.id] = p.at
		ex.queue.advance(ex.round)
	}
	return true
}

// limitFree is when as many jobs of those that count against a limit are
// reckoned to have ended as it takes to start one more; now if none is hit, and
// Never where that does not help, as with a budget that is used up.
func (ex *explainer) limitFree(c *class) Time {
	at := ex.now
	for range len(ex.s.running) + 1 {
		hit, over := ex.overLimitAt(c, at)
		if !over {
			return at
		}
		if hit.ask == 0 {
			return Never // a budget: nothing comes back to it
		}
		next := Never
		for _, run := range ex.s.running { // a minimum: order does not matter
			if t := run.tallies[hit.kind]; t != nil && t.tallyKey == hit.tallyKey {
				if end := ex.calendar.expectedEnd(run.Run); end > at {
					next = min(next, end)
				}
			}
		}
		if next == Never {
			return Never
		}
		at = next
	}
	return Never
}

// othersBefore says whether jobs that go before this one wait for the same limit: what
// becomes free of it is theirs first.
func (ex *explainer) othersBefore(e *entry) bool {
	hit, _ := ex.usage.overLimit(e.class)
	for _, x := range ex.s.waiting { // whether there is one: order does not matter
		if x == e || x.since > ex.now || ex.placed[x.id] != 0 || !ex.goesBefore(x, e) {
			continue
		}
		same := false
		x.class.eachTally(func(t *tally) { same = same || t.tallyKey == hit.tallyKey })
		if same {
			return true
		}
	}
	return false
}

// overLimitAt is overLimit once the jobs that are reckoned to end by then have
// ended.
func (ex *explainer) overLimitAt(c *class, at Time) (limitHit, bool) {
	var saved [tallyKinds]need
	var own [tallyKinds]*tally
	c.eachTally(func(t *tally) {
		own[t.kind], saved[t.kind] = t, need{running: t.running, milli: t.milli, gpuTime: ex.usage.gpuTime[t]}
	})
	for _, run := range ex.s.running { // sums: order does not matter
		if ex.calendar.expectedEnd(run.Run) > at {
			continue
		}
		for i, t := range own {
			if t != nil && run.tallies[i] == t {
				t.running--
				t.milli -= run.MilliGPU
				ex.usage.gpuTime[t] -= times(run.MilliGPU, int64(max(run.End-ex.now, 0)))
			}
		}
	}
	hit, over := ex.usage.overLimit(c)
	for i, t := range own {
		if t != nil {
			t.running, t.milli, ex.usage.gpuTime[t] = saved[i].running, saved[i].milli, saved[i].gpuTime
		}
	}
	return hit, over
}

// before is those of the jobs before it, by Position, that have a place in the plan
// on nodes that the job could use, in the order of the plan.
func (ex *explainer) before(e *entry) ([]JobID, int) {
	nodes := map[string]bool{}
	for _, shape := range e.class.shape.Kinds() {
		for _, nodeKind := range ex.s.index.Order {
			if !shape.On(nodeKind).OK {
				continue
			}
			for _, n := range nodeKind.Nodes {
				nodes[n.Name] = shape.Named(n)
			}
		}
	}
	var out []JobID
	count := 0
	see := func(id JobID, ranks []Allocation) {
		if x := ex.s.waiting[id]; x == nil || !ex.goesBefore(x, e) || !slices.ContainsFunc(ranks, func(a Allocation) bool { return nodes[a.Node] }) {
			return
		}
		if count++; count <= maxBefore {
			out = append(out, id)
		}
	}
	for _, st := range ex.plan.Starts {
		see(st.Job, st.Ranks)
	}
	for _, res := range ex.plan.Reservations {
		see(res.Job, res.Ranks)
	}
	return out, count
}

// goesBefore says whether one waiting job goes before another, by priority.
func (r *round) goesBefore(a, b *entry) bool {
	score := func(e *entry) int64 {
		c := e.class
		return r.score(&r.kinds[c.kind.slot], &c.kind.heads[c.slot], e.since, e.id)
	}
	x, y := score(a), score(b)
	return x > y || x == y && compareEntries(a, b) < 0
}

func compareCodes(a, b Reason) int { return cmp.Compare(codeOrder(a.Code), codeOrder(b.Code)) }

func codeOrder(c Code) int {
	return slices.Index([]Code{CodeNever, CodeLimit, CodePartition, CodeDependency, CodeBeginTime, CodeReservation, CodeLicenses, CodeResources, CodePriority}, c)
}
