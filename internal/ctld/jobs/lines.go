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

	ends *ends

	mu    sync.Mutex
	kept  map[filter]selection
	size  int          // lines of all of them
	pages []*endedPage // nil: not yet looked at
}

// selection is the jobs that a filter selects, in order, and how many tasks are below
// each array that stands for them. It never changes.
type selection struct {
	jobs  []*state.Job
	below map[job.Number]int
}

// maxKept bounds the lines of the selections that are kept: 8 bytes each.
const maxKept = 1 << 20

// search is a filter of somebody who asks.
type search struct {
	*filter
	words   []string                // of Text
	private func(*state.Owner) bool // whether they may not see more of an owner's jobs than that these are there
}

func searchFor(f *filter, private func(*state.Owner) bool) *search {
	return &search{f, strings.Fields(strings.ToLower(f.Text)), private}
}

// selected is what find says of all jobs.
func (o *ordered) selected(f *search) ([]*state.Job, map[job.Number]int) {
	if f.Text != "" || f.Name != "" || f.ended() { // it depends on who asks, or may be large
		return o.find(o.candidates(f), f)
	}
	return o.selectedLive(f)
}

// selectedLive is what find says of the jobs that are not over, for many who ask for the same, as open pages do: one of
// them has the jobs looked through. Nobody may change it.
func (o *ordered) selectedLive(f *search) ([]*state.Job, map[job.Number]int) {
	key := f.selecting()
	o.mu.Lock()
	s, ok := o.kept[key]
	o.mu.Unlock()
	if ok {
		return s.jobs, s.below
	}
	s.jobs, s.below = o.find(o.liveOf(f), f)
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, ok := o.kept[key]; !ok && o.size+len(s.jobs) <= maxKept && len(o.kept) < maxKept/1024 {
		o.kept[key] = s
		o.size += len(s.jobs)
	}
	return s.jobs, s.below
}

func (s *Queries) order(v *state.View) *ordered {
	o := &ordered{view: v, sums: v.Summaries(), byUser: map[string][]*state.Job{}, kept: map[filter]selection{}, ends: &s.ends}
	var waiting []*state.Job
	for j := range v.Live() {
		if j.State.Active() {
			o.live = append(o.live, j)
		} else {
			waiting = append(waiting, j)
		}
	}
	o.live = append(o.live, waiting...)
	for _, j := range o.live {
		o.byUser[j.Owner.User] = append(o.byUser[j.Owner.User], j)
	}
	return o
}

// find is the jobs among candidates that a filter selects, in order, and how many tasks are
// below each array that stands for them.
func (o *ordered) find(candidates iter.Seq[*state.Job], f *search) (found []*state.Job, below map[job.Number]int) {
	below = map[job.Number]int{}
	for j := range candidates {
		switch {
		case !o.lists(j, f):
		case j.Parent > 0 && o.standsFor(j.Parent, f):
			below[j.Parent]++
		default:
			found = append(found, j)
		}
	}
	return found, below
}

// lists says whether a filter selects a job.
func (o *ordered) lists(j *state.Job, f *search) bool {
	return f.lists(j, o.sums, f.private) && (len(f.words) == 0 || o.says(j, f.words, f.private(j.Owner)))
}

// standsFor says whether the line of an array stands for those of its tasks.
func (o *ordered) standsFor(array job.Number, f *search) bool {
	if !f.Fold || f.Array != 0 {
		return false
	}
	p := o.view.Job(array)
	return p != nil && (f.ended() || !p.State.Final()) && o.lists(p, f)
}

// candidates yields the jobs among which a filter selects, in order.
func (o *ordered) candidates(f *search) iter.Seq[*state.Job] {
	live := o.liveOf(f)
	if !f.ended() {
		return live
	}
	return func(yield func(*state.Job) bool) {
		for j := range live {
			if !yield(j) {
				return
			}
		}
		o.ended(f)(yield)
	}
}

// liveOf yields those of them that are not over.
func (o *ordered) liveOf(f *search) iter.Seq[*state.Job] {
	if f.User != "" {
		return slices.Values(o.byUser[f.User])
	}
	return slices.Values(o.live)
}

// ended says whether those that have ended are asked for, too.
func (f *filter) ended() bool {
	if f.State == "" {
		return f.All
	}
	return slices.ContainsFunc(job.States, func(st job.State) bool { return st.Final() && f.hasState(st) })
}

// selecting is the filter without what does not say which jobs it selects.
func (f filter) selecting() filter {
	f.Offset, f.Limit, f.MaxAge, f.Factors, f.Steps = 0, 0, 0, false, false
	return f
}

// says whether all words are in what the list shows of a job to one who sees it so.
func (o *ordered) says(j *state.Job, words []string, private bool) bool {
	parts := []string{j.ID(), j.Owner.User, j.Owner.Project, string(j.Status())}
	if !private {
		reason := string(j.Reason)
		if j.State == job.Queued {
			reason = string(o.view.WaitingCode(j))
		}
		parts = append(parts, j.Name, reason, j.Text)
		if !j.State.Pending() {
			parts = slices.AppendSeq(parts, j.Nodes())
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
