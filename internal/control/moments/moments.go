// Package moments is when something is due for jobs, the first first. It is pure. What
// is due, and whether it still is when the moment comes, its owner knows.
package moments

import (
	"cmp"
	"fmt"
	"slices"

	"gbatch/internal/job"
	"gbatch/sched"
)

// Moment is when something is due for a job.
type Moment struct {
	At  sched.Time
	Job job.Number
}

func order(a, b Moment) int {
	return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Job, b.Job))
}

// List is moments in order.
type List struct{ list []Moment }

// Add takes one in; one that is there already is there once.
func (l *List) Add(m Moment) {
	if at, there := slices.BinarySearchFunc(l.list, m, order); !there {
		l.list = slices.Insert(l.list, at, m)
	}
}

// Next is the first moment, false if there is none.
func (l *List) Next() (sched.Time, bool) {
	if len(l.list) == 0 {
		return 0, false
	}
	return l.list[0].At, true
}

// Take is the first that has come, and forgets it; false if none has.
func (l *List) Take(now sched.Time) (Moment, bool) {
	if len(l.list) == 0 || l.list[0].At > now {
		return Moment{}, false
	}
	m := l.list[0]
	l.list = l.list[1:]
	return m, true
}

// Has says whether a moment is in the list.
func (l *List) Has(m Moment) bool {
	_, there := slices.BinarySearchFunc(l.list, m, order)
	return there
}

// Check verifies the order.
func (l *List) Check() error {
	if !slices.IsSortedFunc(l.list, order) {
		return fmt.Errorf("moments are not in order: %v", l.list)
	}
	return nil
}
