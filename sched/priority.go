package sched

import (
	"sort"

	"gbatch/accounting"
	"gbatch/sched/fixed"
	"gbatch/sched/nodes"
)

// Factors are the terms of a job's priority, in points. Their sum is Total.
type Factors struct {
	Total      int64 `json:"total"`
	Age        int64 `json:"age"`
	FairShare  int64 `json:"fairShare"`
	Size       int64 `json:"size"`
	QOS        int64 `json:"qos"`
	Partition  int64 `json:"partition,omitempty"`
	Adjustment int64 `json:"adjustment"`
	Slowdown   int64 `json:"slowdown,omitempty"`
	Small      int64 `json:"small,omitempty"`
	Boosted    bool  `json:"boosted,omitempty"` // the oldest of an owner who was patient: before all that are not
}

// boost lifts a job that waited too long above every sum of points.
const boost = 1 << 50

// ranking says who goes first: the terms of priority, as they are in one round.
type ranking struct {
	s      *State
	policy *Policy
	shares *accounting.Shares
	now    Time

	totalMilli, totalCPU int64          // of all nodes that are known
	boostAfter           Time           // see patience; 0 until it is worked out
	turns                map[owner]turn // who goes before all others; nil until it is worked out
	untils               map[owner]Time // see until, of jobs that start in this round
}

func newRanking(in Input) ranking {
	k := ranking{s: in.State, policy: &in.State.policy, shares: in.Shares, now: in.Now}
	for _, nodeKind := range in.State.index.Order {
		k.totalMilli += int64(nodeKind.Known*len(nodeKind.Sample.GPUs)) * WholeGPU
		k.totalCPU += int64(nodeKind.Known) * nodeKind.Sample.MilliCPU
	}
	return k
}

// Priorities are the terms of the priority of those of the jobs that wait.
func (in Input) Priorities(ids []JobID) map[JobID]Factors {
	r := newRound(in)
	defer r.close()
	out := make(map[JobID]Factors, len(ids))
	for _, id := range ids {
		if e := in.State.waiting[id]; e != nil {
			out[id] = r.ranking.factors(e)
		}
	}
	return out
}

func (k *ranking) factors(e *entry) Factors {
	c := e.class
	since := max(e.since, k.began(c.account))
	f := Factors{
		Age:        k.agePoints(since),
		FairShare:  k.sharePoints(c.account),
		Size:       k.sizePoints(c.shape),
		QOS:        k.s.qosPoints(c.account.qos),
		Partition:  k.s.partitionPoints(c.shape),
		Adjustment: int64(c.priority),
		Slowdown:   k.slowPoints(c.kind, since),
		Small:      k.smallPoints(c.kind),
		Boosted:    k.boosted(c.account, e.since, e.id),
	}
	f.Total = f.Age + f.FairShare + f.Size + f.QOS + f.Partition + f.Adjustment + f.Slowdown + f.Small
	return f
}

// score is a job's priority as the queue is ordered by it.
func (r *round) score(q *kindQueue, h *head, since Time, id JobID) int64 {
	k := &r.ranking
	if k.boosted(h.account, since, id) {
		return boost + int64(k.now-since)
	}
	rank := &r.ranks[h.account.slot]
	since = max(since, rank.began)
	return h.static + rank.points + q.size + k.agePoints(since) + k.slowPoints(q.jobKind, since) + k.smallPoints(q.jobKind)
}

func (k *ranking) agePoints(since Time) int64 {
	age := min(max(k.now-since, 0), k.policy.MaxAge)
	return fixed.MulDiv(k.policy.Weights.Age, int64(age), int64(k.policy.MaxAge))
}

// slowPoints grow with the slowdown that a job has suffered so far.
func (k *ranking) slowPoints(kind *jobKind, since Time) int64 {
	w := k.policy.Weights.Slowdown
	if w == 0 {
		return 0
	}
	return min(fixed.MulDiv(w, int64(max(k.now-since, 0)), int64(max(kind.expected, shortJob))), maxSlowPoints)
}

// shortJob is the run time below which jobs count as equally short, and
// maxSlowPoints bounds what slowdown can add to a priority.
const (
	shortJob      = 10 * Second
	maxSlowPoints = 1 << 40
)

func (k *ranking) sharePoints(a *account) int64 {
	return fixed.MulDiv(k.policy.Weights.FairShare, k.shares.Factor(a.project, a.user), accounting.Scale)
}

// sizePoints grow with the share of the cluster's GPUs, or where it has none,
// of its cores.
func (k *ranking) sizePoints(shape *nodes.Shape) int64 {
	part, all := shape.SizeMilli(), k.totalMilli
	if all == 0 {
		part, all = int64(shape.Ranks())*shape.MilliCPU, k.totalCPU
	}
	return fixed.MulDiv(k.policy.Weights.Size, min(part, all), max(all, 1))
}

func (s *State) qosPoints(qos string) int64 {
	return s.policy.Weights.QOS * s.policy.QOS[s.qosOf(qos)].Priority / 1000
}

// staticPoints are those that change with the policy only.
func (s *State) staticPoints(c *class) int64 {
	return s.qosPoints(c.account.qos) + s.partitionPoints(c.shape) + int64(c.priority)
}

// Position is the place of a waiting job among those that may start by their own
// will, in the order of priority, and how many these are. 1 goes first; 0 is no
// place: it does not wait, or not yet for room. Jobs of a class keep their order,
// so it costs a search in each class, not a look at each job.
func (in Input) Position(id JobID) (place, of int) {
	s := in.State
	e := s.waiting[id]
	r := newRound(in)
	defer r.close()
	r.weigh()
	score := func(c *class, x *entry) int64 {
		return r.score(&r.kinds[c.kind.slot], &c.kind.heads[c.slot], x.since, x.id)
	}
	placed := e != nil && e.since <= r.now
	own := int64(0)
	if placed {
		own, place = score(e.class, e), 1
	}
	s.eachClass(func(c *class) { // sums: order does not matter
		of += c.first(func(x *entry) bool { return x.since <= r.now })
		if placed {
			place += c.first(func(x *entry) bool {
				points := score(c, x)
				return x.since <= r.now && (points > own || points == own && compareEntries(x, e) < 0)
			})
		}
	})
	return place, of
}

// first is how many jobs there are at the beginning of the class for which f is
// true; it must be true for none behind one for which it is false.
func (c *class) first(f func(*entry) bool) int {
	jobs := c.jobs[c.head:]
	job := func(i int) *entry { // the first one there or behind
		for i < len(jobs) && jobs[i] == nil {
			i++
		}
		if i == len(jobs) {
			return nil
		}
		return jobs[i]
	}
	n := sort.Search(len(jobs), func(i int) bool { entry := job(i); return entry == nil || !f(entry) })
	if c.live == len(jobs) {
		return n
	}
	live := 0
	for _, entry := range jobs[:n] {
		if entry != nil {
			live++
		}
	}
	return live
}
