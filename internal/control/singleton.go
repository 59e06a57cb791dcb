package control

import (
	"slices"
	"sort"

	"gbatch/internal/job"
	"gbatch/internal/state"
)

// nameKey is what jobs of which only one may run at a time have in common.
type nameKey struct{ user, name string }

// namesakes is, for each name that a singleton has asked for, the jobs of it
// that were live when it was looked at last, by number.
type namesakes map[nameKey][]job.Number

func (c *Controller) live(n job.Number) bool {
	j := c.job(n)
	return j != nil && !j.State.Final() && j.Cron == nil
}

// earlier is the last job of that name and user before a number that has not
// ended; 0 if there is none. The first question about a name costs as much as
// there are jobs.
func (c *Controller) earlier(name, user string, before job.Number) job.Number {
	k := nameKey{user, name}
	list, ok := c.namesakes[k]
	if !ok {
		for j := range c.jobs.All() {
			if j.Name == name && j.Owner.User == user && j.Parent == 0 && c.live(j.Number) {
				list = append(list, j.Number)
			}
		}
	}
	end := sort.Search(len(list), func(i int) bool { return list[i] >= before })
	for i := end - 1; i >= 0; i-- {
		if c.live(list[i]) {
			c.namesakes[k] = slices.Delete(list, i+1, end)
			return list[i]
		}
	}
	c.keepNamesakes(k, list)
	return 0
}

// keepNamesakes forgets jobs that have ended, and the name when none is left.
func (c *Controller) keepNamesakes(k nameKey, list []job.Number) {
	list = slices.DeleteFunc(list, func(n job.Number) bool { return !c.live(n) })
	if len(list) == 0 {
		delete(c.namesakes, k)
		return
	}
	c.namesakes[k] = list
}

// addNamesake takes a new job in, where somebody asks for its name.
func (c *Controller) addNamesake(j *state.Job) {
	k := nameKey{j.Owner.User, j.Name}
	list, ok := c.namesakes[k]
	if !ok || !c.live(j.Number) || j.Parent > 0 { // an array stands for its tasks
		return
	}
	list = append(list, j.Number)
	if n := len(list); n&(n-1) == 0 {
		c.keepNamesakes(k, list)
		return
	}
	c.namesakes[k] = list
}
