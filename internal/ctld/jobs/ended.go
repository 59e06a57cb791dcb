package jobs

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"sync"

	"gbatch/internal/job"
	"gbatch/internal/state"
)

// ends counts the jobs that are over page by page of the table, so that a list need not look at those that it does not
// show. What was counted of a page holds until another one is in its place.
type ends struct {
	mu   sync.Mutex
	last []*endedPage // by number
}

// endedPage is what was counted of a page. It never changes.
type endedPage struct {
	number uint64
	page   *state.Page
	count  int
	users  []userCount // by user
	tasks  []taskCount // of arrays, in no order
}

type userCount struct {
	user  string
	count int
}

// taskCount is how many tasks of an array a user has.
type taskCount struct {
	array job.Number
	userCount
}

// of are the pages of a view.
func (e *ends) of(v *state.View) []*endedPage {
	e.mu.Lock()
	defer e.mu.Unlock()
	old, out := e.last, make([]*endedPage, 0, len(e.last)+1)
	for n, p := range v.Jobs.Pages() {
		for len(old) > 0 && old[0].number < n {
			old = old[1:]
		}
		if len(old) > 0 && old[0].page == p {
			out = append(out, old[0])
		} else {
			out = append(out, countEnded(n, p))
		}
	}
	e.last = out
	return out
}

func countEnded(number uint64, p *state.Page) *endedPage {
	out := &endedPage{number: number, page: p}
	users, tasks := map[string]int{}, map[taskCount]int{}
	for j := range p.Ended(false) {
		out.count++
		users[j.Owner.User]++
		if j.Parent > 0 {
			tasks[taskCount{j.Parent, userCount{user: j.Owner.User}}]++
		}
	}
	for user, n := range users {
		out.users = append(out.users, userCount{user, n})
	}
	slices.SortFunc(out.users, func(a, b userCount) int { return cmp.Compare(a.user, b.user) })
	for of, n := range tasks {
		of.count = n
		out.tasks = append(out.tasks, of)
	}
	return out
}

// of is how many are a user's, or all if none is named.
func (p *endedPage) of(user string) int {
	if user == "" {
		return p.count
	}
	if i, ok := slices.BinarySearchFunc(p.users, user, func(c userCount, user string) int { return cmp.Compare(c.user, user) }); ok {
		return p.users[i].count
	}
	return 0
}

// over are the pages with what was counted of them.
func (o *ordered) over() []*endedPage {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.pages == nil {
		o.pages = o.ends.of(o.view)
	}
	return o.pages
}

// ended yields the jobs that are over among which a filter selects, in order.
func (o *ordered) ended(f *search) iter.Seq[*state.Job] {
	return func(yield func(*state.Job) bool) {
		for _, p := range inOrder(o.over(), f.Newest) {
			if p.of(f.User) == 0 {
				continue
			}
			for j := range p.page.Ended(f.Newest) {
				if !yield(j) {
					return
				}
			}
		}
	}
}

// inOrder yields the elements of a list, from the last one back if that is wanted.
func inOrder[T any](list []T, backward bool) iter.Seq2[int, T] {
	if backward {
		return slices.Backward(list)
	}
	return slices.All(list)
}

// known says whether any job is a user's.
func (o *ordered) known(user string) bool {
	return len(o.byUser[user]) > 0 || slices.ContainsFunc(o.over(), func(p *endedPage) bool { return p.of(user) > 0 })
}

// part is what a list shows of the jobs that a filter selects, how many these are, and how many tasks are below each array
// that stands for them.
func (o *ordered) part(f *search) (rows []*state.Job, total int, below map[job.Number]int) {
	if f.everything() {
		return o.partOfAll(f)
	}
	found, below := o.selected(f)
	rows = found[min(f.Offset, len(found)):]
	if f.Limit > 0 && len(rows) > f.Limit {
		rows = rows[:f.Limit]
	}
	return rows, len(found), below
}

// everything says that all jobs are asked for, or all of one user.
func (f *filter) everything() bool {
	plain := f.selecting()
	plain.User, plain.Fold, plain.Newest = "", false, false
	return plain == filter{All: true}
}

// partOfAll is part of all jobs, or of all of one user: of those that are over, which may be very many, it looks at those alone
// that are shown.
func (o *ordered) partOfAll(f *search) (rows []*state.Job, total int, below map[job.Number]int) {
	live, below := o.selectedLive(f)
	below = maps.Clone(below)
	pages := o.over()
	folded := map[job.Number]bool{} // arrays whose tasks have no lines
	lines := make([]int, len(pages))
	total = len(live)
	for i, p := range pages {
		lines[i] = p.of(f.User)
		for _, t := range p.tasks {
			if f.User != "" && f.User != t.user {
				continue
			}
			fold, known := folded[t.array]
			if !known {
				fold = o.standsFor(t.array, f)
				folded[t.array] = fold
			}
			if fold {
				lines[i] -= t.count
				below[t.array] += t.count
			}
		}
		total += lines[i]
	}
	skip, most := f.Offset, total
	if f.Limit > 0 {
		most = min(most, f.Limit)
	}
	rows = live[min(skip, len(live)):]
	rows = slices.Clip(rows[:min(len(rows), most)])
	skip -= min(skip, len(live))
	for i, p := range inOrder(pages, f.Newest) {
		if len(rows) == most {
			break
		}
		if skip >= lines[i] {
			skip -= lines[i]
			continue
		}
		for j := range p.page.Ended(f.Newest) {
			if f.User != "" && f.User != j.Owner.User || folded[j.Parent] {
				continue
			}
			if skip > 0 {
				skip--
				continue
			}
			if rows = append(rows, j); len(rows) == most {
				break
			}
		}
	}
	return rows, total, below
}
