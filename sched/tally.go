package sched

import (
	"cmp"

	"gbatch/accounting"
	"gbatch/sched/fixed"
)

// tally counts what one user, project, qos, user within a qos, or bucket has.
type tally struct {
	tallyKey
	limits  Limits
	waiting int
	running int
	milli   int64 // GPU thousandths of running jobs
}

type tallyKey struct {
	kind tallyKind
	name string
	of   string // the qos of a user within a qos
}

type tallyKind uint8

const (
	ofUser tallyKind = iota
	ofProject
	ofQOS
	ofUserInQOS
	ofBucket
	tallyKinds
)

func (s *State) accountTallies(key accountKey) [ofBucket]*tally {
	qos := s.qosOf(key.qos)
	out := [ofBucket]*tally{
		ofUser:    s.tally(tallyKey{kind: ofUser, name: key.user}),
		ofProject: s.tally(tallyKey{kind: ofProject, name: key.project}),
	}
	if qos != "" {
		out[ofQOS] = s.tally(tallyKey{kind: ofQOS, name: qos})
		out[ofUserInQOS] = s.tally(tallyKey{kind: ofUserInQOS, name: key.user, of: qos})
	}
	return out
}

func (s *State) talliesOf(j *Job) [tallyKinds]*tally {
	var out [tallyKinds]*tally
	of := s.accountTallies(accountKey{j.Project, j.User, j.QOS})
	copy(out[:], of[:])
	if j.Bucket != "" {
		out[ofBucket] = s.tally(tallyKey{kind: ofBucket, name: j.Bucket})
	}
	return out
}

// tally finds or makes one. One that counts nothing is dropped again.
func (s *State) tally(key tallyKey) *tally {
	t := s.tallies[key]
	if t == nil {
		t = &tally{tallyKey: key, limits: s.limitsOf(key)}
		s.tallies[key] = t
	}
	return t
}

func (s *State) dropTally(t *tally) {
	if t.waiting == 0 && t.running == 0 {
		delete(s.tallies, t.tallyKey)
	}
}

func (s *State) qosOf(name string) string {
	if name == "" {
		return s.policy.DefaultQOS
	}
	return name
}

func (s *State) limitsOf(key tallyKey) Limits {
	p := &s.policy
	switch key.kind {
	case ofUser:
		if l, ok := p.Users[key.name]; ok {
			return l
		}
		return p.User
	case ofProject:
		if l, ok := p.Projects[key.name]; ok {
			return l
		}
		return p.Project
	case ofQOS:
		return p.QOS[key.name].Limits
	case ofUserInQOS:
		return p.QOS[key.of].PerUser
	}
	return Limits{}
}

// Outside is jobs that wait and that the State does not know of, such as the
// tasks of an array that are not in the queue yet.
type Outside struct {
	Project, User, QOS string
	Jobs               int
}

// MayQueue says whether so many more jobs like this one may be queued beside
// those that are known, and those of others. Where they may not, the reason says
// whose limit it is; whoever submitted them is refused.
func (s *State) MayQueue(j Job, more int, others []Outside) (Reason, bool) {
	for _, k := range s.keysOf(&j) {
		most, has := s.limitsOf(k).Queued, 0
		if t := s.tallies[k]; t != nil {
			has = t.waiting
		}
		for _, o := range others {
			if s.countsFor(k, o) {
				has += o.Jobs
			}
		}
		if most > 0 && has+more > most {
			return limitHit{tallyKey: k, what: "queued jobs", used: int64(has), ask: int64(more), max: int64(most)}.reason(), false
		}
	}
	return Reason{}, true
}

// keysOf are those whose limits bind a job, but for its bucket.
func (s *State) keysOf(j *Job) []tallyKey {
	keys := []tallyKey{{kind: ofUser, name: j.User}, {kind: ofProject, name: j.Project}}
	if qos := s.qosOf(j.QOS); qos != "" {
		keys = append(keys, tallyKey{kind: ofQOS, name: qos}, tallyKey{kind: ofUserInQOS, name: j.User, of: qos})
	}
	return keys
}

func (s *State) countsFor(k tallyKey, o Outside) bool {
	switch k.kind {
	case ofUser:
		return k.name == o.User
	case ofProject:
		return k.name == o.Project
	case ofQOS:
		return k.name == s.qosOf(o.QOS)
	case ofUserInQOS:
		return k.name == o.User && k.of == s.qosOf(o.QOS)
	}
	return false
}

// charge counts a running job in, or out with sign -1.
func (s *State) charge(run *running, sign int) {
	if sign > 0 {
		run.tallies = s.talliesOf(&run.Job)
	}
	for _, t := range run.tallies {
		if t == nil {
			continue
		}
		t.running += sign
		t.milli += int64(sign) * run.MilliGPU
		s.dropTally(t)
	}
}

// Beyond says whether a job asks for more than a limit of those whose it is, with
// nothing else running, so that it could never start; the reason says whose.
func (s *State) Beyond(j Job) (Reason, bool) {
	milli := j.Shape.Total(func(s *Shape) int64 {
		if s.AllGPUs {
			return max(s.MilliGPU, WholeGPU)
		}
		return s.MilliGPU
	})
	for _, k := range s.keysOf(&j) {
		if hit, over := alone(s.limitsOf(k), k, milli, times(milli, int64(cmp.Or(j.Limit, s.policy.DefaultLimit)))); over {
			return hit.reason(), true
		}
	}
	return Reason{}, false
}

// alone is the one of the limits that one job exceeds by itself.
func alone(l Limits, k tallyKey, milli, gpuTime int64) (limitHit, bool) {
	switch {
	case l.MilliGPU > 0 && milli > l.MilliGPU:
		return limitHit{tallyKey: k, what: "GPUs", ask: milli, max: l.MilliGPU, never: true}, true
	case l.GPUMinutes > 0 && gpuTime > l.GPUMinutes*milliMinute:
		return limitHit{tallyKey: k, what: "GPU-minutes", ask: gpuTime, max: l.GPUMinutes * milliMinute, never: true}, true
	}
	return limitHit{}, false
}

// overLimit is a limit that one more job of the class would exceed: one that it
// exceeds by itself, else the first.
func (u *usage) overLimit(c *class) (limitHit, bool) {
	milli := c.kind.milliGPU()
	hit, over := u.overLimitWith(c, milli)
	if !over {
		return hit, false
	}
	for _, t := range c.account.tallies {
		if t == nil {
			continue
		}
		if alone, never := alone(t.limits, t.tallyKey, milli, times(milli, int64(c.kind.Limit))); never {
			return alone, true
		}
	}
	return hit, true
}

// overLimitWith is the same for a job that holds so many GPU thousandths: how
// many the GPUs of a whole node are is known only once the node is.
func (u *usage) overLimitWith(c *class, milli int64) (limitHit, bool) {
	ask := need{running: 1, milli: milli, gpuTime: times(milli, int64(c.kind.Limit))}
	until := u.now + c.kind.Limit
	for _, t := range c.account.tallies {
		if t == nil {
			continue
		}
		if hit, over := u.over(t, t.limits, ask, until); over {
			return hit, true
		}
	}
	if extra := c.extra; extra != nil && extra.bucket != nil {
		if hit, over := u.over(extra.bucket, Limits{Running: extra.bucketMax}, ask, until); over {
			return hit, true
		}
	}
	if b, over := u.shares.OverBudget(c.account.project); over {
		what := "budget"
		if b.Monthly {
			what = "month's budget"
		}
		return limitHit{tallyKey: tallyKey{kind: ofProject, name: b.Account}, what: what, used: b.UsedMinutes, max: b.MaxMinutes}, true
	}
	return limitHit{}, false
}

// usage is what counts against limits in one round, beside what the tallies say.
type usage struct {
	now     Time
	shares  *accounting.Shares
	gpuTime map[*tally]int64  // thousandths x milliseconds that running jobs may still use, if a limit counts it
	planned map[*tally][]need // of jobs that have a reservation: what is started beside them must leave that
}

// need is what a job counts for against limits, and from when on.
type need struct {
	at      Time
	running int
	milli   int64
	gpuTime int64
}

// over is the first of the limits that one more job would exceed, which runs
// until the time given at most: with what runs, and with what is planned to
// start before that.
func (u *usage) over(t *tally, l Limits, ask need, until Time) (limitHit, bool) {
	if l == (Limits{}) {
		return limitHit{}, false
	}
	has := need{running: t.running, milli: t.milli, gpuTime: u.gpuTime[t]}
	for _, p := range u.planned[t] {
		if p.at < until {
			has.running += p.running
			has.milli += p.milli
			has.gpuTime += p.gpuTime
		}
	}
	switch {
	case l.Running > 0 && has.running+ask.running > l.Running:
		return limitHit{tallyKey: t.tallyKey, what: "running jobs", used: int64(has.running), ask: 1, max: int64(l.Running)}, true
	case l.MilliGPU > 0 && ask.milli > 0 && has.milli+ask.milli > l.MilliGPU:
		return limitHit{tallyKey: t.tallyKey, what: "GPUs", used: has.milli, ask: ask.milli, max: l.MilliGPU}, true
	case l.GPUMinutes > 0 && ask.gpuTime > 0 && has.gpuTime+ask.gpuTime > l.GPUMinutes*milliMinute:
		return limitHit{tallyKey: t.tallyKey, what: "GPU-minutes", used: has.gpuTime, ask: ask.gpuTime, max: l.GPUMinutes * milliMinute}, true
	}
	return limitHit{}, false
}

// count counts a job with a reservation against the limits of those after it.
func (u *usage) count(c *class, at Time, milli int64) {
	c.eachTally(func(t *tally) {
		if t.limits == (Limits{}) && t.kind != ofBucket {
			return
		}
		u.planned[t] = append(u.planned[t], need{at, 1, milli, times(milli, int64(c.kind.Limit))})
	})
}

// countTime sums up what running jobs may still use, where a limit asks for it.
func (u *usage) countTime(s *State) {
	if !s.timed {
		return
	}
	for _, run := range s.running { // sums: order does not matter
		left := int64(max(run.End-u.now, 0))
		for _, t := range run.tallies {
			if t != nil {
				u.gpuTime[t] += times(run.MilliGPU, left)
			}
		}
	}
}

// times is a product of numbers that are not below 0; it stops at Never.
func times(a, b int64) int64 { return min(fixed.MulDiv(a, b, 1), int64(Never)) }

// limitHit is a limit with what is used of it and what was asked on top.
type limitHit struct {
	tallyKey
	what           string
	used, ask, max int64
	never          bool // the job exceeds it by itself
}

// milliMinute is a GPU-minute in thousandths x milliseconds.
const milliMinute = WholeGPU * int64(Minute)

func (l limitHit) code() Code {
	if l.never {
		return CodeNever
	}
	return CodeLimit
}

func (l limitHit) reason() Reason { return Reason{Code: l.code(), Text: l.text()} }
