// Package licenses counts the licences of a site: a job holds so many of each from its
// start to its end, wherever it runs. A plan reckons with them as with what nodes have, by
// when jobs are expected to end and by what is reserved. It is pure, and owns the counts
// of one round.
package licenses

import (
	"cmp"
	"fmt"
	"slices"

	"gbatch/sched/spec"
	"gbatch/sched/words"
)

// Book is who has licences, and for how long. What holds licences at the moment is asked
// for when somebody wants to know, and again after Forget.
type Book struct {
	Total   map[string]int64 // how many the site has
	Now     spec.Time
	Holders func(yield func(list []spec.License, end spec.Time)) // jobs that run, with when they are expected to end

	reserved []reservation
	counters map[string]*counter
	made     bool // counters say what the others do
}

type reservation struct {
	job        spec.JobID
	start, end spec.Time
	list       []spec.License
}

// make works the counters out.
func (b *Book) make() {
	if b.made {
		return
	}
	b.made, b.counters = true, map[string]*counter{}
	for name := range b.Total {
		b.counters[name] = &counter{points: []useFrom{{at: b.Now}}}
	}
	b.Holders(func(list []spec.License, end spec.Time) { b.add(list, b.Now, end, +1) })
	for _, r := range b.reserved {
		b.add(r.list, r.start, r.end, +1)
	}
}

func (b *Book) add(list []spec.License, start, end spec.Time, sign int64) {
	if !b.made {
		return
	}
	for _, x := range list {
		if c := b.counters[x.Name]; c != nil {
			c.add(start, end, sign*x.Count)
		}
	}
}

// Take takes in that a job has begun that is one of Holders from now on.
func (b *Book) Take(list []spec.License, end spec.Time) { b.add(list, b.Now, end, +1) }

// Forget takes in that a job with licences is expected to end at another time.
func (b *Book) Forget() { b.made = false }

// Reserve keeps licences for a job.
func (b *Book) Reserve(id spec.JobID, start, end spec.Time, list []spec.License) {
	if len(list) > 0 {
		b.reserved = append(b.reserved, reservation{id, start, end, list})
		b.add(list, start, end, +1)
	}
}

// Release gives up what is reserved for those jobs.
func (b *Book) Release(of func(spec.JobID) bool) {
	b.reserved = slices.DeleteFunc(b.reserved, func(r reservation) bool {
		if !of(r.job) {
			return false
		}
		b.add(r.list, r.start, r.end, -1)
		return true
	})
}

// Earliest is the first time, from the one given, at which all of the list is to be had
// for so long; Never if there is none.
func (b *Book) Earliest(list []spec.License, from, length spec.Time) spec.Time {
	if len(list) == 0 {
		return from
	}
	b.make()
	for at := from; ; from = at {
		for _, x := range list {
			c := b.counters[x.Name]
			if c == nil || x.Count > b.Total[x.Name] {
				return spec.Never
			}
			if at = c.earliest(at, length, b.Total[x.Name]-x.Count); at >= spec.Never {
				return spec.Never
			}
		}
		if at == from {
			return at
		}
	}
}

// Lacking says of which licence there are too few now, and whether there are ever
// enough; empty: there are.
func (b *Book) Lacking(list []spec.License, length spec.Time) (text string, never bool) {
	if len(list) == 0 || b.Earliest(list, b.Now, length) == b.Now {
		return "", false
	}
	for _, x := range list {
		if total := b.Total[x.Name]; x.Count > total {
			return fmt.Sprintf("the site has %s, and the job asks for %d", words.Plural(int(total), x.Name+" licence"), x.Count), true
		}
	}
	for _, x := range list {
		total := b.Total[x.Name]
		if b.counters[x.Name].earliest(b.Now, length, total-x.Count) == b.Now {
			continue
		}
		if used := b.counters[x.Name].points[0].used; used+x.Count <= total {
			return fmt.Sprintf("%d of %d %s licences are free, and planned for jobs before it", total-used, total, x.Name), false
		}
		free := max(total-b.counters[x.Name].points[0].used, 0)
		return fmt.Sprintf("%d of %d %s licences are free, and the job asks for %d", free, total, x.Name, x.Count), false
	}
	return "", false
}

// Left are numbers of a licence, below the one given, that are to be had at some time by
// what runs and is planned: a few, the largest first.
func (b *Book) Left(name string, below int64) (list []int64) {
	b.make()
	c := b.counters[name]
	if c == nil {
		return nil
	}
	for _, p := range c.points {
		if left := b.Total[name] - p.used; left > 0 && left < below {
			list = append(list, left)
		}
	}
	slices.Sort(list)
	list = slices.Compact(list)
	slices.Reverse(list)
	return list[:min(len(list), 4)]
}

// counter is how many of one licence are in use from now on.
type counter struct{ points []useFrom }

// useFrom holds until the next, the last for ever.
type useFrom struct {
	at   spec.Time
	used int64
}

// add takes so many more from start until end, or gives them back.
func (c *counter) add(start, end spec.Time, n int64) {
	if start >= end {
		return
	}
	first := c.cut(start)
	for i, last := first, c.cut(end); i < last; i++ {
		c.points[i].used += n
	}
}

// cut is the index of the point at t, which is made if need be. What is before the
// first point counts for it.
func (c *counter) cut(t spec.Time) int {
	i, ok := slices.BinarySearchFunc(c.points, t, func(p useFrom, t spec.Time) int { return cmp.Compare(p.at, t) })
	if !ok && i > 0 {
		c.points = slices.Insert(c.points, i, useFrom{t, c.points[i-1].used})
	}
	return i
}

// earliest is the first time, from the one given, from which on no more than most are
// in use for so long; Never if there is none.
func (c *counter) earliest(from, length spec.Time, most int64) spec.Time {
	at := from
	i, ok := slices.BinarySearchFunc(c.points, from, func(p useFrom, t spec.Time) int { return cmp.Compare(p.at, t) })
	if !ok && i > 0 {
		i--
	}
	for ; i < len(c.points) && c.points[i].at < at+length; i++ {
		switch {
		case c.points[i].used <= most:
		case i+1 == len(c.points):
			return spec.Never
		default:
			at = max(at, c.points[i+1].at)
		}
	}
	return at
}
