package given

import (
	"fmt"
	"maps"
	"slices"

	"gbatch/internal/control/ranks"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// claim is who waits for a node by a plan: the first of them with its kind, and the first of another
// kind; 0: there is none.
type claim struct {
	first, other job.Number
	kind         Kind
}

// alone says whether all who wait are of a kind.
func (c claim) alone(k Kind) bool { return c.kind == k && c.other == 0 }

// Claims is who waits for which node.
type Claims map[string]claim

// ClaimsOf are those of a plan.
func ClaimsOf(plan *sched.Plan, jobs *state.Table) Claims {
	out := Claims{}
	for _, r := range plan.Reservations {
		j := jobs.Get(job.Number(r.Job))
		kind := KindOf(j)
		for _, at := range r.Ranks {
			c, any := out[at.Node]
			switch {
			case !any:
				c = claim{first: j.Number, kind: kind}
			case c.kind != kind && c.other == 0:
				c.other = j.Number
			}
			out[at.Node] = c
		}
	}
	return out
}

// Ends is why nothing may be behind a job that runs on a node; empty: it may.
func (c Claims) Ends(j *state.Job, n *state.Node, windows []state.Window) string {
	if why := closed(n, windows); why != "" {
		return why
	}
	by, any := c[n.Name]
	switch k := KindOf(j); {
	case !any || by.alone(k):
		return ""
	case by.kind == k:
		return fmt.Sprintf("job %d waits for %s too", by.other, n.Name)
	default:
		return fmt.Sprintf("job %d waits for %s too", by.first, n.Name)
	}
}

func closed(n *state.Node, windows []state.Window) string {
	if state, _ := n.State(); state != "up" {
		return n.Name + " is " + state
	}
	for _, w := range windows {
		if slices.Contains(w.Nodes, n.Name) {
			return fmt.Sprintf("%s is reserved (%s)", n.Name, w.Name)
		}
	}
	return ""
}

// Rows are those of a kind to which more may be added: jobs that hold something and those
// behind them.
type Rows struct {
	list []*row
	most int // behind each
}

type row struct {
	last   *state.Job
	behind int
}

// Site is what there is.
type Site struct {
	Now     sched.Time
	Jobs    *state.Table
	Node    func(name string) *state.Node
	Windows []state.Window
}

// RowsOf are the rows of a kind of jobs on the nodes that it alone waits for, if it is known to be short.
func (s *Set) RowsOf(k Kind, c Claims, at Site) *Rows {
	out := &Rows{}
	if !s.short(k) {
		return out
	}
	out.most = int(min(Time/s.ran[k], most))
	if p := at.Jobs.Get(k.parent); p == nil || p.Tasks == nil || !p.Tasks.Reuse {
		out.most = min(out.most, mostMade)
	}
	for _, name := range slices.Sorted(maps.Keys(c)) {
		n := at.Node(name)
		if !c[name].alone(k) || !n.Inventory.Ahead || closed(n, at.Windows) != "" {
			continue
		}
		for _, num := range n.Jobs {
			if j := at.Jobs.Get(num); KindOf(j) == k && j.Holds() && mayFollow(j, at.Now) {
				out.add(s, j, at.Jobs)
			}
		}
	}
	return out
}

// add takes in a row, unless it ends with one that is being taken back.
func (r *Rows) add(s *Set, j *state.Job, jobs *state.Table) {
	w := &row{last: j}
	for n := range s.Behind(j.Number) {
		if w.last = jobs.Get(n); w.last.Ending != nil {
			return
		}
		w.behind++
	}
	r.list = append(r.list, w)
}

// mayFollow says whether a job's place may go to another task as it is.
func mayFollow(j *state.Job, now sched.Time) bool {
	at := j.Attempt
	return j.Ending == nil && len(at.Ranks) == 1 && at.Ranks[0].Resize == nil && at.Limit == 0 && !at.Alone && at.Paused == "" && !ranks.Unsure(at) &&
		j.Request.LimitScope != job.LimitJob && now-at.Start < Time
}

// For is behind whom a task is to be: in the row with room that has the fewest, of those that ask the
// same. Nil: there is none. Added notes that it is.
func (r *Rows) For(j *state.Job) (before *state.Job, added func(*state.Job)) {
	var to *row
	for _, w := range r.list {
		if w.behind < r.most && w.last.Request == j.Request && (to == nil || w.behind < to.behind) {
			to = w
		}
	}
	if to == nil {
		return nil, nil
	}
	return to.last, func(j *state.Job) { to.last, to.behind = j, to.behind+1 }
}
