package depend

import (
	"slices"
	"sort"

	"gbatch/internal/job"
	"gbatch/internal/state"
)

// nameKey is what jobs of which only one may run at a time have in common.
type nameKey struct{ user, name string }

// names is, for each name that a singleton has asked for, the jobs of it
// that were live when it was looked at last, by number.
type names map[nameKey][]job.Number

func live(jobs *state.Table, n job.Number) bool {
	j := jobs.Get(n)
	return j != nil && !j.State.Final() && j.Cron == nil
}

// Earlier is the last job of that name and user before a number that has not
// ended; 0 if there is none. The first question about a name costs as much as
// there are jobs that are not over.
func (s *Set) Earlier(name, user string, before job.Number, jobs *state.Table) job.Number {
	k := nameKey{user, name}
	list, ok := s.names[k]
	if !ok {
		for j := range jobs.Live() {
			if j.Name == name && j.Owner.User == user && j.Parent == 0 && live(jobs, j.Number) {
				list = append(list, j.Number)
			}
		}
	}
	end := sort.Search(len(list), func(i int) bool { return list[i] >= before })
	for i := end - 1; i >= 0; i-- {
		if live(jobs, list[i]) {
			s.names[k] = slices.Delete(list, i+1, end)
			return list[i]
		}
	}
	s.names.keep(k, list, jobs)
	return 0
}

// keep forgets jobs that have ended, and the name when none is left.
func (names names) keep(k nameKey, list []job.Number, jobs *state.Table) {
	list = slices.DeleteFunc(list, func(n job.Number) bool { return !live(jobs, n) })
	if len(list) == 0 {
		delete(names, k)
		return
	}
	names[k] = list
}

// AddName takes a new job in, where somebody asks for its name.
func (s *Set) AddName(j *state.Job, jobs *state.Table) {
	k := nameKey{j.Owner.User, j.Name}
	list, ok := s.names[k]
	if !ok || !live(jobs, j.Number) || j.Parent > 0 { // an array stands for its tasks
		return
	}
	list = append(list, j.Number)
	if n := len(list); n&(n-1) == 0 {
		s.names.keep(k, list, jobs)
		return
	}
	s.names[k] = list
}
