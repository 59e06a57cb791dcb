// Package ahead says which images nodes shall have before the jobs start that the
// plan has there. It is pure.
package ahead

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
)

const (
	atOnce  = 2              // of one node at a time
	horizon = 6 * sched.Hour // what is planned later changes too much until then
)

// Planned is whose images each node is to have soon, in the order of the plan.
func Planned(now sched.Time, reservations []sched.Reservation) map[string][]job.Number {
	planned := map[string][]job.Number{}
	for _, res := range reservations {
		if res.At > now+horizon {
			continue
		}
		for _, a := range res.Ranks {
			if list := planned[a.Node]; !slices.Contains(list, job.Number(res.Job)) {
				planned[a.Node] = append(list, job.Number(res.Job))
			}
		}
	}
	return planned
}

// Of yields the nodes of a list for which something was planned before, or is now, by name: no other one is asked for anything.
func Of(list *state.Nodes, before, planned map[string][]job.Number) iter.Seq[*state.Node] {
	names := slices.AppendSeq(slices.Collect(maps.Keys(before)), maps.Keys(planned))
	slices.Sort(names)
	return func(yield func(*state.Node) bool) {
		for _, name := range slices.Compact(names) {
			if n := list.Get(name); n != nil && !yield(n) {
				return
			}
		}
	}
}

// Next keeps what a node was asked for while it is still planned, and adds up to
// the bound. It says whether anything is another now, and whether some is new.
func Next(asked []state.Prepull, planned []job.Number) (list []state.Prepull, changed, fresh bool) {
	for _, p := range asked {
		if slices.Contains(planned, p.Job) {
			list = append(list, p)
		}
	}
	for _, num := range planned {
		known := slices.ContainsFunc(list, func(p state.Prepull) bool { return p.Job == num })
		if !known && len(list) < atOnce {
			list, fresh = append(list, state.Prepull{Job: num}), true
		}
	}
	return list, fresh || len(list) != len(asked), fresh
}

// wasThere is how many milliseconds it takes at most to see that an image need
// not be pulled, which is worth no word.
const wasThere = 3

// Text is what is said to the job's user of a node's word; empty: nothing, as
// nothing was waited for.
func Text(name string, d node.Prepulled) string {
	switch {
	case d.Error != "":
		return fmt.Sprintf("image could not be pulled on %s ahead of the start: %s", name, d.Error)
	case d.PullMS < wasThere:
		return ""
	}
	took := (time.Duration(d.PullMS) * time.Millisecond).Round(time.Second / 10)
	return fmt.Sprintf("image is on %s ahead of the start, after %s", name, took)
}
