package sched

// tally counts what one user, project, qos, user within a qos, or bucket has.
type tally struct {
	tallyKey
	limits  Limits
	waiting int
	running int
	milli   int64 // GPU thousandths of running jobs

	gpuTime int64 // in the current round: thousandths x milliseconds that running jobs may still use
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

// charge counts a running job in, or out with sign -1.
func (s *State) charge(r *run, sign int) {
	if sign > 0 {
		r.tallies = s.talliesOf(&r.Job)
	}
	for _, t := range r.tallies {
		if t == nil {
			continue
		}
		t.running += sign
		t.milli += int64(sign) * r.milli
		s.dropTally(t)
	}
}

// overLimit is the first limit that one more job of the class would exceed.
func (r *round) overLimit(c *class) (limitHit, bool) {
	return r.overLimitWith(c, c.kind.milliGPU())
}

// overLimitWith is the same for a job that holds so many GPU thousandths: how
// many the GPUs of a whole node are is known only once the node is.
func (r *round) overLimitWith(c *class, milli int64) (limitHit, bool) {
	gpuTime := times(milli, int64(c.kind.limit))
	for _, t := range c.account.tallies {
		if t == nil {
			continue
		}
		switch l := &t.limits; {
		case l.Running > 0 && t.running+1 > l.Running:
			return limitHit{t.tallyKey, "running jobs", int64(t.running), 1, int64(l.Running)}, true
		case l.MilliGPU > 0 && milli > 0 && t.milli+milli > l.MilliGPU:
			return limitHit{t.tallyKey, "GPUs", t.milli, milli, l.MilliGPU}, true
		case l.GPUMinutes > 0 && gpuTime > 0 && t.gpuTime+gpuTime > l.GPUMinutes*WholeGPU*int64(Minute):
			return limitHit{t.tallyKey, "GPU-minutes", t.gpuTime, gpuTime, l.GPUMinutes * WholeGPU * int64(Minute)}, true
		}
	}
	if x := c.extra; x != nil && x.bucket != nil && x.bucketMax > 0 && x.bucket.running+1 > x.bucketMax {
		return limitHit{x.bucket.tallyKey, "running jobs", int64(x.bucket.running), 1, int64(x.bucketMax)}, true
	}
	if b, over := r.shares.OverBudget(c.account.project); over {
		return limitHit{tallyKey{kind: ofProject, name: b.Account}, "budget", b.UsedMinutes, 0, b.MaxMinutes}, true
	}
	return limitHit{}, false
}

// times is a product of numbers that are not below 0; it stops at Never.
func times(a, b int64) int64 { return min(mulDiv(a, b, 1), int64(Never)) }

// limitHit is a limit with what is used of it and what was asked on top.
type limitHit struct {
	tallyKey
	what           string
	used, ask, max int64
}
