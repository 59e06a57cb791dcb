package sim

import (
	"cmp"
	"fmt"
	"slices"

	"gbatch/sched"
)

// Group is the jobs of one user or partition: how long they waited as the log
// has it, and how long in the replay.
type Group struct {
	By   string `json:"by"` // user, partition
	Name string `json:"name"`
	Jobs int    `json:"jobs"`

	WasMean float64 `json:"recorded_avg_wait_s"`
	WasP95  float64 `json:"recorded_p95_wait_s"`
	Mean    float64 `json:"avg_wait_s"`
	P95     float64 `json:"p95_wait_s"`
	Sooner  int     `json:"sooner"` // jobs that began at least a minute sooner
	Later   int     `json:"later"`  // and later
}

// notable is by how much a start must differ to count.
const notable = sched.Minute

// groups are those of a replay, with most jobs first.
func groups(cfg config, r result) []Group {
	type pair struct{ was, is []sched.Time }
	var out []Group
	for _, by := range []struct {
		name string
		of   func(*Job) string
	}{{"user", func(j *Job) string { return j.User }}, {"partition", func(j *Job) string { return j.Partition }}} {
		waits, all := map[string]*pair{}, map[string]*Group{}
		var names []string
		for i, o := range r.Outcomes {
			j := &cfg.Jobs[i]
			name := by.of(j)
			if o.Start < 0 || name == "" {
				continue
			}
			if all[name] == nil {
				all[name], waits[name], names = &Group{By: by.name, Name: name}, &pair{}, append(names, name)
			}
			g, p, wait := all[name], waits[name], o.Start-j.Submit
			p.was, p.is = append(p.was, j.Waited), append(p.is, wait)
			if g.Jobs++; wait <= j.Waited-notable {
				g.Sooner++
			} else if wait >= j.Waited+notable {
				g.Later++
			}
		}
		slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(all[b].Jobs, all[a].Jobs), cmp.Compare(a, b)) })
		for _, name := range names {
			g, p := all[name], waits[name]
			g.WasMean, g.WasP95 = spread(p.was)
			g.Mean, g.P95 = spread(p.is)
			out = append(out, *g)
		}
	}
	return out
}

func spread(waits []sched.Time) (mean, p95 float64) {
	slices.Sort(waits)
	sum := sched.Time(0)
	for _, w := range waits {
		sum += w
	}
	return float64(sum) / float64(len(waits)) / 1000, seconds(waits, 95)
}

// maxGroups is how many of a kind are printed; JSON has all.
const maxGroups = 30

func groupText(all []Group) string {
	if len(all) == 0 {
		return ""
	}
	table := [][]string{}
	count, more, by := 0, 0, ""
	rest := func() {
		if more > 0 {
			table = append(table, []string{fmt.Sprintf("and %d more", more)})
		}
	}
	for _, g := range all {
		if g.By != by {
			rest()
			by, count, more = g.By, 0, 0
			table = append(table, []string{g.By, "jobs", "waited", "95 %", "would wait", "95 %", "sooner", "later"})
		}
		if count++; count > maxGroups {
			more++
			continue
		}
		table = append(table, []string{"  " + g.Name, fmt.Sprint(g.Jobs), number(g.WasMean, "s"), number(g.WasP95, "s"), number(g.Mean, "s"), number(g.P95, "s"), fmt.Sprint(g.Sooner), fmt.Sprint(g.Later)})
	}
	rest()
	return "\n" + align(table)
}
