package sched

import "cmp"

// over says whether one more such job is over a limit of its own.
func (o *oracle) over(j Job, milli int64) bool {
	p := o.in.State.policy
	limit, _ := o.limitOf(j)
	qos := func(q string) string { return cmp.Or(q, p.DefaultQOS) }
	check := func(l Limits, of func(Job) bool) bool {
		running, gpus, left := 0, int64(0), int64(0)
		for _, r := range o.runs {
			if !of(r.Job) {
				continue
			}
			running++
			var m int64
			for _, a := range r.Ranks {
				m += a.MilliGPU()
			}
			gpus += m
			left += m * int64(max(r.End-o.in.Now, 0))
		}
		for _, q := range o.plan {
			if qlimit, _ := o.limitOf(q.job); of(q.job) && q.at < o.in.Now+limit {
				running++
				gpus += q.milli
				left += q.milli * int64(qlimit)
			}
		}
		return l.Running > 0 && running+1 > l.Running || l.MilliGPU > 0 && milli > 0 && gpus+milli > l.MilliGPU ||
			l.GPUMinutes > 0 && milli > 0 && left+milli*int64(limit) > l.GPUMinutes*1000*60_000
	}
	user, ok := p.Users[j.User]
	if !ok {
		user = p.User
	}
	project, ok := p.Projects[j.Project]
	if !ok {
		project = p.Project
	}
	q := p.QOS[qos(j.QOS)]
	return check(user, func(r Job) bool { return r.User == j.User }) ||
		check(project, func(r Job) bool { return r.Project == j.Project }) ||
		check(q.Limits, func(r Job) bool { return qos(r.QOS) == qos(j.QOS) }) ||
		check(q.PerUser, func(r Job) bool { return qos(r.QOS) == qos(j.QOS) && r.User == j.User }) ||
		j.Bucket != "" && check(Limits{Running: j.BucketMax}, func(r Job) bool { return r.Bucket == j.Bucket })
}

func milliOf(ranks []Allocation) int64 {
	var sum int64
	for _, a := range ranks {
		sum += a.MilliGPU()
	}
	return sum
}

func leastMilli(s *Shape) int64 {
	var sum int64
	for _, one := range ranksOf(s) {
		per := one.MilliGPU
		if one.AllGPUs {
			per = max(per, 1000)
		}
		sum += per
	}
	return sum
}
