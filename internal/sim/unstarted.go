package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gbatch/internal/job"
)

// Unstarted is how many jobs never started for one reason.
type Unstarted struct {
	Why   string   `json:"why"`
	Jobs  int      `json:"jobs"`
	First []string `json:"first"` // the names of the first ones in the log
}

const (
	mostReasons = 10 // reasons that a report has; the rest is one
	mostFirst   = 3  // jobs that are named for each
)

// left says of the jobs that have not started when all else is over why.
func (e *engine) left() {
	v := e.c.View(e.now)
	for n := 1; n < len(e.index); n++ {
		o := &e.out.Outcomes[e.index[n]]
		if o.Start >= 0 || o.Refused != "" {
			continue
		}
		o.Refused = "it ended without a start"
		if j := v.Job(job.Number(n)); j != nil && j.State == job.Queued {
			o.Refused = cmp.Or(v.Waiting(j).Text, "it waits still")
		} else if j != nil && j.Text != "" {
			o.Refused = j.Text
		}
	}
}

// unstarted counts the jobs that never started, by what kept them: what keeps most of
// them first.
func unstarted(cfg config, r result) []Unstarted {
	at := map[string]int{}
	var all []Unstarted
	for i, o := range r.Outcomes {
		if o.Start >= 0 {
			continue
		}
		n, known := at[o.Refused]
		if !known {
			n = len(all)
			at[o.Refused] = n
			all = append(all, Unstarted{Why: o.Refused})
		}
		u := &all[n]
		if u.Jobs++; len(u.First) < mostFirst {
			u.First = append(u.First, cfg.Jobs[i].Name)
		}
	}
	slices.SortStableFunc(all, func(a, b Unstarted) int { return cmp.Compare(b.Jobs, a.Jobs) })
	if len(all) > mostReasons {
		rest := Unstarted{Why: fmt.Sprintf("for %d other reasons", len(all)-mostReasons), First: all[mostReasons].First}
		for _, u := range all[mostReasons:] {
			rest.Jobs += u.Jobs
		}
		all = append(all[:mostReasons], rest)
	}
	return all
}

// unstartedText is what of each report never started, and why.
func unstartedText(reports []Report) string {
	var b strings.Builder
	for _, r := range reports {
		if len(r.Unstarted) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\nnever started, %s\n", r.Policy)
		for _, u := range r.Unstarted {
			more := ""
			if u.Jobs > len(u.First) {
				more = ", ..."
			}
			fmt.Fprintf(&b, "%6d  %s (%s%s)\n", u.Jobs, u.Why, strings.Join(u.First, ", "), more)
		}
	}
	return b.String()
}
