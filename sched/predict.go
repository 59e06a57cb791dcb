package sched

// Predictor expects of a job what its user's last jobs of the nearest kind did:
// those of the same name, shape and limit, then of the same shape and limit, of
// the same limit, and any. It is the geometric mean of the last few run times,
// since they spread over orders of magnitude, and never above the limit.
//
// It is a value with one owner, and equal calls give equal expectations.
type Predictor struct {
	recent map[predictKey]*recent
	order  []predictKey // oldest first

	used, asked int64 // machine time of lately, as jobs took it and as their limits said
}

type predictKey struct {
	user, name, shape string
	limit             Time
	level             int8
}

// recent is the logarithms of the last run times, the newest first.
type recent struct {
	n    int
	logs [predictRuns]int32
}

// predictRuns is how many run times count: enough to even out chance, few
// enough to follow what the user does now.
const predictRuns = 7

// maxPredictKeys bounds what is remembered; the oldest is forgotten first.
const maxPredictKeys = 100_000

// Observe takes note of how long a job ran.
func (p *Predictor) Observe(j Job, ran Time) {
	p.weigh(j, ran)
	if p.recent == nil {
		p.recent = map[predictKey]*recent{}
	}
	for _, k := range j.predictKeys() {
		r := p.recent[k]
		if r == nil {
			r = &recent{}
			p.recent[k] = r
			p.order = append(p.order, k)
		}
		copy(r.logs[1:], r.logs[:])
		r.logs[0] = int32(log2(uint64(max(ran, 1))))
		r.n = min(r.n+1, predictRuns)
	}
	for len(p.order) > maxPredictKeys {
		delete(p.recent, p.order[0])
		p.order = p.order[1:]
	}
}

// weigh counts how much of what is asked is used. What was long ago counts less.
func (p *Predictor) weigh(j Job, ran Time) {
	if j.Limit <= 0 || j.Shape == nil {
		return
	}
	const unit, forget = 10 * Second, 10
	size := int64(j.Shape.Ranks()) * max(j.Shape.MilliGPU/WholeGPU, j.Shape.MilliCPU/16_000, 1)
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
func (p *Predictor) Predict(j Job) Time {
	var sum int64
	n := 0
	for _, k := range j.predictKeys() {
		if r := p.recent[k]; r != nil {
			for _, l := range r.logs[:min(r.n, predictRuns-n)] {
				sum += int64(l)
				n++
			}
		}
	}
	if n == 0 {
		return 0
	}
	mean := Time(exp2(int(sum / int64(n))))
	if j.Limit > 0 {
		mean = min(mean, j.Limit)
	}
	return twoFigures(max(mean, 1))
}

// predictKeys is the kinds that the job is of, the nearest first.
func (j *Job) predictKeys() [4]predictKey {
	var shape string
	if j.Shape != nil {
		_, _, shape = j.Shape.canonical()
	}
	return [4]predictKey{
		{user: j.User, name: j.Name, shape: shape, limit: j.Limit, level: 0},
		{user: j.User, shape: shape, limit: j.Limit, level: 1},
		{user: j.User, limit: j.Limit, level: 2},
		{user: j.User, level: 3},
	}
}

// exp2 is the inverse of log2.
func exp2(l int) uint64 {
	n, rest := l>>logBits, uint64(l&(1<<logBits-1))
	if n >= logBits {
		return 1<<n + rest<<(n-logBits)
	}
	return 1<<n + rest>>(logBits-n)
}

// twoFigures rounds down to two decimal figures.
func twoFigures(t Time) Time {
	unit := Time(1)
	for t/unit >= 100 {
		unit *= 10
	}
	return t / unit * unit
}
