// Package predict says how long a job can be expected to run, by what its user's
// last jobs did. It knows no queue and no node; who wants a prediction of a job
// asks for it before the job is queued.
package predict

import (
	"gbatch/sched/fixed"
	"gbatch/sched/spec"
)

// Predictor expects of a job what its user's last jobs of the nearest kind did:
// those of the same name, shape and limit, then of the same shape and limit, of
// the same limit, and any. It is the geometric mean of the last few run times,
// since they spread over orders of magnitude, and never above the limit.
//
// It is a value with one owner, and equal calls give equal expectations.
type Predictor struct {
	recent map[key]*recent
	order  []key // oldest first

	used, asked int64 // machine time of lately, as jobs took it and as their limits said
}

type key struct {
	user, name, shape string
	limit             spec.Time
	level             int8
}

// recent is the logarithms of the last run times, the newest first.
type recent struct {
	n    int
	logs [maxRuns]int32
}

// maxRuns is how many run times count: enough to even out chance, few
// enough to follow what the user does now.
const maxRuns = 7

// maxKeys bounds what is remembered; the oldest is forgotten first.
const maxKeys = 100_000

// Observe takes note of how long a job ran.
func (p *Predictor) Observe(j spec.Job, ran spec.Time) {
	p.weigh(j, ran)
	if p.recent == nil {
		p.recent = map[key]*recent{}
	}
	for _, k := range keysOf(&j) {
		r := p.recent[k]
		if r == nil {
			r = &recent{}
			p.recent[k] = r
			p.order = append(p.order, k)
		}
		copy(r.logs[1:], r.logs[:])
		r.logs[0] = int32(fixed.Log2(uint64(max(ran, 1))))
		r.n = min(r.n+1, maxRuns)
	}
	for len(p.order) > maxKeys {
		delete(p.recent, p.order[0])
		p.order = p.order[1:]
	}
}

// weigh counts how much of what is asked is used. What was long ago counts less.
func (p *Predictor) weigh(j spec.Job, ran spec.Time) {
	if j.Limit <= 0 || j.Shape == nil {
		return
	}
	const unit, forget = 10 * spec.Second, 10
	size := int64(j.Shape.Ranks()) * max(j.Shape.MilliGPU/spec.WholeGPU, j.Shape.MilliCPU/16_000, 1)
	size = min(size, 1<<17)
	p.used += int64(min(ran, j.Limit, 1<<20*unit)/unit+1)*size - p.used>>forget
	p.asked += int64(min(j.Limit, 1<<20*unit)/unit+1)*size - p.asked>>forget
}

// LimitUse is how much of the machine time that limits ask for is used, in
// percent: 1 to 100. It is 50 as long as nothing is known.
func (p *Predictor) LimitUse() int64 {
	if p.asked == 0 {
		return 50
	}
	return min(max(p.used*100/p.asked, 1), 100)
}

// Predict is the run time to expect of a job, for Job.Predicted: 0 if nothing is
// known of its user. Two figures are exact, so that jobs that are alike stay in
// one class.
func (p *Predictor) Predict(j spec.Job) spec.Time {
	var sum int64
	n := 0
	for _, k := range keysOf(&j) {
		if r := p.recent[k]; r != nil {
			for _, l := range r.logs[:min(r.n, maxRuns-n)] {
				sum += int64(l)
				n++
			}
		}
	}
	if n == 0 {
		return 0
	}
	mean := spec.Time(fixed.Exp2(int(sum / int64(n))))
	if j.Limit > 0 {
		mean = min(mean, j.Limit)
	}
	return twoFigures(max(mean, 1))
}

// keysOf is the kinds that the job is of, the nearest first.
func keysOf(j *spec.Job) [4]key {
	var shape string
	if j.Shape != nil {
		_, _, shape = j.Shape.Canonical()
	}
	return [4]key{
		{user: j.User, name: j.Name, shape: shape, limit: j.Limit, level: 0},
		{user: j.User, shape: shape, limit: j.Limit, level: 1},
		{user: j.User, limit: j.Limit, level: 2},
		{user: j.User, level: 3},
	}
}

// twoFigures rounds down to two decimal figures.
func twoFigures(t spec.Time) spec.Time {
	unit := spec.Time(1)
	for t/unit >= 100 {
		unit *= 10
	}
	return t / unit * unit
}
