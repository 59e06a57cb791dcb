package jobs

import (
	"slices"
	"strings"

	"gbatch/internal/cli/exit"
	"gbatch/internal/job"
)

// stateWords are the words that -t takes besides our own state names: Slurm's
// long and short ones.
var stateWords = map[string][]job.State{
	"PENDING": {job.OnHold, job.Queued}, "PD": {job.OnHold, job.Queued},
	"CONFIGURING": {job.Assigned, job.Starting}, "CF": {job.Assigned, job.Starting},
	"R": {job.Running}, "COMPLETING": {job.MustHalt, job.Halting}, "CG": {job.MustHalt, job.Halting},
	"COMPLETED": {job.Finished}, "CD": {job.Finished}, "F": {job.Failed}, "CA": {job.Cancelled},
	"ALL": job.States,
}

// shortStates are Slurm's letters for our states.
var shortStates = map[job.State]string{
	job.OnHold: "PD", job.Queued: "PD", job.Assigned: "CF", job.Starting: "CF", job.Running: "R",
	job.MustHalt: "CG", job.Halting: "CG", job.Halted: "HT", job.Finished: "CD", job.Failed: "F",
	job.Cancelled: "CA", job.Deleted: "RM",
}

// ParseStates reads the values of -t, in any case.
func ParseStates(words []string) ([]job.State, error) {
	var out []job.State
	for _, w := range words {
		up := strings.ToUpper(w)
		if slices.Contains(job.States, job.State(up)) {
			out = append(out, job.State(up))
			continue
		}
		states, ok := stateWords[up]
		if !ok {
			var known []string
			for _, s := range job.States {
				known = append(known, string(s))
			}
			return nil, exit.Usagef("state %q is not known: use %s, all, or Slurm's PD, CF, R, CG, CD, F, CA", w, strings.Join(known, ", "))
		}
		out = append(out, states...)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// stateColor is the SGR code of a state, empty for none.
func stateColor(cell []byte) string {
	s := job.State(cell)
	switch {
	case s == job.Running:
		return "\x1b[32m"
	case s == job.Failed:
		return "\x1b[31m"
	case s.Active():
		return "\x1b[36m"
	case s == job.Queued || s == job.OnHold:
		return "\x1b[33m"
	}
	return ""
}

// Only is the only value of a filter, or none: the controller filters by one.
func Only[T string | int](values []T) (v T) {
	if len(values) == 1 {
		v = values[0]
	}
	return v
}
