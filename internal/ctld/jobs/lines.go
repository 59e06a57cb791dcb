package jobs

import (
	"iter"
	"slices"
	"strings"
	"sync"

	"gbatch/internal/job"
	"gbatch/internal/state"
)

// ordered is the jobs of a view that are not over, in the order of lists. Apart from
// what it keeps of what was found it never changes.
type ordered struct {
	view   *state.View
	sums   map[job.Number]*state.Summary
	live   []*state.Job
	byUser map[string][]*state.Job

	mu   sync.Mutex
	kept map[filter]selection
	size int // lines of all of them
}

// selection is the jobs that a filter selects, in order, and how many tasks are below
// each array that stands for them. It never changes.
type selection struct {
	jobs  []*state.Job
	below map[job.Number]int
}

// maxKept bounds the lines of the selections that are kept: 8 bytes each.
const maxKept = 1 << 20

// selected is find for many who ask for the same, as open pages do: one of them has
// the jobs looked through. What depends on who asks, or may be large, is not kept.
func (o *ordered) selected(f *filter, private func(*state.Owner) bool) ([]*state.Job, map[job.Number]int) {
	key := *f
	key.Offset, key.Limit, key.MaxAge, key.Factors, key.Steps = 0, 0, 0, false, false
	if f.Text != "" || f.Name != "" || f.ended() {
		return o.find(f, private)
	}
	o.mu.Lock()
	s, ok := o.kept[key]
	o.mu.Unlock()
	if ok {
		return s.jobs, s.below
	}
	s.jobs, s.below = o.find(f, private)
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, ok := o.kept[key]; !ok && o.size+len(s.jobs) <= maxKept && len(o.kept) < maxKept/1024 {
		o.kept[key] = s
		o.size += len(s.jobs)
	}
	return s.jobs, s.below
}

func order(v *state.View) *ordered {
	o := &ordered{view: v, sums: v.Summaries(), byUser: map[string][]*state.Job{}, kept: map[filter]selection{}}
	var waiting []*state.Job
	for j := range v.All() {
		switch listGroup(j.State) {
		case 0:
			o.live = append(o.live, j)
		case 1:
			waiting = append(waiting, j)
		}
	}
	o.live = append(o.live, waiting...)
	for _, j := range o.live {
		o.byUser[j.Owner.User] = append(o.byUser[j.Owner.User], j)
	}
	return o
}

// find is the jobs that a filter selects, in order, and how many tasks are below
// each array that stands for them.
func (o *ordered) find(f *filter, private func(*state.Owner) bool) (found []*state.Job, below map[job.Number]int) {
	words := strings.Fields(strings.ToLower(f.Text))
	listed := func(j *state.Job) bool {
		return f.lists(j, o.sums, private) && (len(words) == 0 || o.says(j, words, private(j.Owner)))
	}
	below = map[job.Number]int{}
	for j := range o.candidates(f) {
		if !listed(j) {
			continue
		}
		if f.Fold && j.Parent > 0 && f.Array == 0 {
			if p := o.view.Job(j.Parent); p != nil && (f.ended() || !p.State.Final()) && listed(p) {
				below[j.Parent]++
				continue
			}
		}
		found = append(found, j)
	}
	return found, below
}

// candidates yields the jobs among which a filter selects, in order.
func (o *ordered) candidates(f *filter) iter.Seq[*state.Job] {
	live := o.live
	if f.User != "" {
		live = o.byUser[f.User]
	}
	if !f.ended() {
		return slices.Values(live)
	}
	return func(yield func(*state.Job) bool) {
		for _, j := range live {
			if !yield(j) {
				return
			}
		}
		var over []*state.Job
		for j := range o.view.All() {
			if listGroup(j.State) == 2 {
				over = append(over, j)
			}
		}
		if f.Newest {
			slices.Reverse(over)
		}
		for _, j := range over {
			if !yield(j) {
				return
			}
		}
	}
}

// ended says whether those that have ended are asked for, too.
func (f *filter) ended() bool { return f.All || f.State != "" }

// says whether all words are in what the list shows of a job to one who sees it so.
func (o *ordered) says(j *state.Job, words []string, private bool) bool {
	parts := []string{j.ID(), j.Owner.User, j.Owner.Project, string(j.Status())}
	if !private {
		reason := string(j.Reason)
		if j.State == job.Queued {
			reason = string(o.view.WaitingCode(j))
		}
		parts = append(parts, j.Name, reason, j.Text)
		if a := j.Last(); a != nil && !j.State.Pending() {
			for _, r := range a.Ranks {
				parts = append(parts, r.Alloc.Node)
			}
		}
	}
	text := strings.ToLower(strings.Join(parts, " "))
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

// listGroup puts running jobs first, then waiting ones, then ended ones.
func listGroup(s job.State) int {
	switch {
	case s.Active():
		return 0
	case s.Pending():
		return 1
	}
	return 2
}
