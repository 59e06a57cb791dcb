package sched

import "math/bits"

// Predictor expects of a job what its user's last jobs of the same name and
// shape did, or else of the same shape, or else the user's last ones. Limits
// that users give are several times too long, and run times vary, so the
// expectation lies between both: it is the geometric mean of the limit and the
// mean of the last two run times.
//
// It is a value with one owner, and equal calls give equal expectations.
type Predictor struct {
	recent map[predictKey]recent
	order  []predictKey // oldest first
}

type predictKey struct{ user, name, shape string }

// recent is the last two run times; the second is 0 until there is one.
type recent struct{ last, before Time }

// maxPredictKeys bounds what is remembered; the oldest is forgotten first.
const maxPredictKeys = 100_000

// Observe takes note of how long a job ran.
func (p *Predictor) Observe(j Job, ran Time) {
	if p.recent == nil {
		p.recent = map[predictKey]recent{}
	}
	for _, k := range j.predictKeys() {
		r, known := p.recent[k]
		if !known {
			p.order = append(p.order, k)
		}
		p.recent[k] = recent{max(ran, 1), r.last}
	}
	for len(p.order) > maxPredictKeys {
		delete(p.recent, p.order[0])
		p.order = p.order[1:]
	}
}

// Predict is the run time to expect of a job, for Job.Predicted: 0 if nothing is
// known of its user. Two figures are exact, so that jobs that are alike stay in
// one class.
func (p *Predictor) Predict(j Job) Time {
	for _, k := range j.predictKeys() {
		r, ok := p.recent[k]
		if !ok || r.before == 0 {
			continue
		}
		mean := (r.last + r.before) / 2
		if j.Limit > 0 {
			mean = min(geometric(mean, j.Limit), j.Limit)
		}
		return twoFigures(max(mean, 1))
	}
	return 0
}

func (j *Job) predictKeys() [3]predictKey {
	var shape string
	if j.Shape != nil {
		_, _, shape = j.Shape.canonical()
	}
	return [3]predictKey{{j.User, j.Name, shape}, {j.User, "", shape}, {user: j.User}}
}

// geometric mean, rounded down.
func geometric(a, b Time) Time {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	var root uint64
	for bit := 62; bit >= 0; bit-- {
		try := root | 1<<bit
		h, l := bits.Mul64(try, try)
		if h < hi || h == hi && l <= lo {
			root = try
		}
	}
	return Time(root)
}

// twoFigures rounds down to two decimal figures.
func twoFigures(t Time) Time {
	unit := Time(1)
	for t/unit >= 100 {
		unit *= 10
	}
	return t / unit * unit
}
