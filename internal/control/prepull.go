package control

import (
	"fmt"
	"slices"
	"time"

	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

const (
	maxPrepulls  = 2              // of one node at a time
	prepullAhead = 6 * sched.Hour // what is planned later changes too much until then
)

// planImages tells nodes of the images that the plan's reservations will want
// there. It is derived from the plan alone, so nothing of it is recorded.
func (t *nodes) planImages(reservations []sched.Reservation) {
	if t.out.noRecords {
		return // a simulation has no images
	}
	planned := map[string][]job.Number{}
	for _, res := range reservations {
		if res.At > t.out.now+prepullAhead {
			continue
		}
		for _, a := range res.Ranks {
			if list := planned[a.Node]; !slices.Contains(list, job.Number(res.Job)) {
				planned[a.Node] = append(list, job.Number(res.Job))
			}
		}
	}
	for _, n := range t.list {
		if len(n.Prepulls)+len(planned[n.Name]) > 0 {
			t.planImagesOf(n, planned[n.Name])
		}
	}
}

// planImagesOf keeps what a node was asked for while it is still planned, and adds
// up to the bound. Only what is new is worth a message of its own.
func (t *nodes) planImagesOf(n *state.Node, planned []job.Number) {
	var list []state.Prepull
	for _, p := range n.Prepulls {
		if slices.Contains(planned, p.Job) {
			list = append(list, p)
		}
	}
	fresh := false
	for _, num := range planned {
		known := slices.ContainsFunc(list, func(p state.Prepull) bool { return p.Job == num })
		if !known && len(list) < maxPrepulls {
			list, fresh = append(list, state.Prepull{Job: num}), true
		}
	}
	if !fresh && len(list) == len(n.Prepulls) {
		return
	}
	v := *n
	v.Prepulls = list
	t.set(v)
	if fresh {
		t.wake(n.Name)
	}
}

// wasThere is how many milliseconds it takes at most to see that an image need
// not be pulled, which is worth no word.
const wasThere = 3

// prepulled takes a node's word on what became of the images that it was to
// pull ahead. It is for people and figures: nothing depends on it.
func (e NodeSync) prepulled(s *step) {
	for _, d := range e.Prepulled {
		n := *s.nodes.get(e.Name)
		i := slices.IndexFunc(n.Prepulls, func(p state.Prepull) bool { return p.Job == d.Job && !p.Answered })
		if i < 0 {
			continue
		}
		n.Prepulls = slices.Clone(n.Prepulls)
		n.Prepulls[i].Answered = true
		s.nodes.set(n)
		s.out.Prepulled = append(s.out.Prepulled, d)
		took := (time.Duration(d.PullMS) * time.Millisecond).Round(time.Second / 10)
		line := fmt.Sprintf("image is on %s ahead of the start, after %s", e.Name, took)
		if d.Error != "" {
			line = fmt.Sprintf("image could not be pulled on %s ahead of the start: %s", e.Name, d.Error)
		}
		there := d.Error == "" && d.PullMS < wasThere
		if j := s.jobs.get(d.Job); j != nil && j.State == job.Queued && !there {
			s.jobs.change(j, line, func(*state.Job) {})
		}
	}
}
