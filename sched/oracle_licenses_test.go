package sched

import "fmt"

// lent is licences that somebody has for a time.
type lent struct {
	span
	list []License
}

func (o *oracle) lend(s *Shape, at span) {
	if len(s.Licenses) > 0 {
		o.lent = append(o.lent, lent{at, s.Licenses})
	}
}

// licensed says whether all licences of a job are to be had at each moment of a span.
func (o *oracle) licensed(j Job, during span) bool {
	moments := []Time{during.start}
	for _, x := range o.lent {
		if x.start > during.start && x.start < during.end {
			moments = append(moments, x.start)
		}
	}
	for _, want := range j.Shape.Licenses {
		for _, t := range moments {
			left := o.in.State.policy.Licenses[want.Name]
			for _, x := range o.lent {
				if x.start <= t && x.end > t {
					left -= countOf(x.list, want.Name)
				}
			}
			if left < want.Count {
				return false
			}
		}
	}
	return true
}

// lacksLicenses says whether licences keep a job from starting, by what runs or by what
// is planned, and whether they do for ever.
func (o *oracle) lacksLicenses(j Job) (now, ever bool) {
	_, estimate := o.limitOf(o.brief(j))
	for _, x := range j.Shape.Licenses {
		ever = ever || x.Count > o.in.State.policy.Licenses[x.Name]
	}
	return !o.licensed(j, span{o.in.Now, o.in.Now + estimate}), ever
}

// brief is the job with the shortest limit that will do.
func (o *oracle) brief(j Job) Job {
	if limit, _ := o.limitOf(j); j.LimitMin > 0 && j.LimitMin < limit {
		j.Limit = j.LimitMin
	}
	return j
}

// given is the job with the limit that a plan gives it, 0 for its own.
func (o *oracle) given(j Job, limit Time) (Job, error) {
	own, _ := o.limitOf(j)
	switch {
	case limit == 0:
		return j, nil
	case j.LimitMin == 0 || limit < j.LimitMin || limit >= own:
		return j, fmt.Errorf("job %d is given %d: its limit is %d, at least %d", j.ID, limit, own, j.LimitMin)
	}
	j.Limit = limit
	return j, nil
}

// mostOf proves that a job that is given a shorter limit could not have had a second
// more where it starts.
func (o *oracle) mostOf(j, given Job, ranks []Allocation) error {
	own, _ := o.limitOf(j)
	longer := given
	longer.Limit += Second
	_, estimate := o.limitOf(longer)
	if given.Limit == j.Limit || longer.Limit >= own || j.Shape.Ranks() != j.Shape.Alike() {
		return nil
	}
	during := span{o.in.Now, o.in.Now + estimate}
	if !o.licensed(longer, during) {
		return nil
	}
	for _, a := range ranks {
		n := o.in.State.index.Nodes[a.Node].Node
		if o.shut(only(n, a), longer, o.busy[a.Node], during) {
			return nil
		}
	}
	return fmt.Errorf("job %d is given %d, and could have had a second more", j.ID, given.Limit)
}

// only is a node of which nothing but the GPUs of an allocation can be had.
func only(n Node, a Allocation) Node {
	var others []string
	for _, g := range n.GPUs {
		taken := false
		for _, x := range a.GPUs {
			taken = taken || x.UUID == g.UUID
		}
		if !taken {
			others = append(others, g.UUID)
		}
	}
	return without(n, others)
}

func countOf(list []License, name string) (n int64) {
	for _, x := range list {
		if x.Name == name {
			n += x.Count
		}
	}
	return n
}
