package sched

import (
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
	Adjustment int64 `json:"adjustment"`
	Slowdown   int64 `json:"slowdown,omitempty"`
	Small      int64 `json:"small,omitempty"`
	Boosted    bool  `json:"boosted,omitempty"` // waits longer than MaxWaitBoost: before all that are not
}

// boost lifts a job that waited too long above every sum of points.
const boost = 1 << 50

// Priorities are the terms of the priority of those of the jobs that wait.
func (in Input) Priorities(ids []JobID) map[JobID]Factors {
	r := newRound(in)
	defer r.close()
	out := make(map[JobID]Factors, len(ids))
	for _, id := range ids {
		if e := in.State.waiting[id]; e != nil {
			out[id] = r.factors(e)
		}
	}
	return out
}

func (r *round) factors(e *entry) Factors {
	p, c := r.policy, e.class
	f := Factors{
		Age:        r.agePoints(e.since),
		FairShare:  r.sharePoints(c.account),
		Size:       r.sizePoints(c.shape),
		QOS:        r.s.qosPoints(c.account.qos),
		Adjustment: int64(c.priority),
		Slowdown:   r.slowPoints(c.kind, e.since),
		Small:      r.smallPoints(c.kind),
		Boosted:    p.MaxWaitBoost > 0 && r.now-e.since >= r.patience(),
	}
	f.Total = f.Age + f.FairShare + f.Size + f.QOS + f.Adjustment + f.Slowdown + f.Small
	return f
}

// score is a job's priority as the queue is ordered by it.
func (r *round) score(k *kindQueue, points int64, since Time) int64 {
	if r.policy.MaxWaitBoost > 0 && r.now-since >= r.patience() {
		return boost + int64(r.now-since)
	}
	return points + k.size + r.agePoints(since) + r.slowPoints(k.jobKind, since) + r.smallPoints(k.jobKind)
}

func (r *round) agePoints(since Time) int64 {
	age := min(max(r.now-since, 0), r.policy.MaxAge)
	return fixed.MulDiv(r.policy.Weights.Age, int64(age), int64(r.policy.MaxAge))
}

// slowPoints grow with the slowdown that a job has suffered so far.
func (r *round) slowPoints(kind *jobKind, since Time) int64 {
	w := r.policy.Weights.Slowdown
	if w == 0 {
		return 0
	}
	return min(fixed.MulDiv(w, int64(max(r.now-since, 0)), int64(max(kind.expected, shortJob))), maxSlowPoints)
}

// shortJob is the run time below which jobs count as equally short, and
// maxSlowPoints bounds what slowdown can add to a priority.
const (
	shortJob      = 10 * Second
	maxSlowPoints = 1 << 40
)

func (r *round) sharePoints(a *account) int64 {
	return fixed.MulDiv(r.policy.Weights.FairShare, r.shares.Factor(a.project, a.user), scale)
}

// sizePoints grow with the share of the cluster's GPUs, or where it has none,
// of its cores.
func (r *round) sizePoints(shape *nodes.Shape) int64 {
	part, all := shape.SizeMilli(), r.totalMilli
	if all == 0 {
		part, all = int64(shape.Ranks())*shape.MilliCPU, r.totalCPU
	}
	return fixed.MulDiv(r.policy.Weights.Size, min(part, all), max(all, 1))
}

func (s *State) qosPoints(qos string) int64 {
	return s.policy.Weights.QOS * s.policy.QOS[s.qosOf(qos)].Priority / 1000
}

// staticPoints are those that change with the policy only.
func (s *State) staticPoints(c *class) int64 { return s.qosPoints(c.account.qos) + int64(c.priority) }
