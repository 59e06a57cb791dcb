package jobs

import (
	"maps"
	"slices"
	"strings"

	"gbatch/internal/api"
	"gbatch/internal/cli/exit"
	"gbatch/internal/job"
	"gbatch/internal/job/nodelist"
)

// stateWords are the words that -t takes besides our own state names: Slurm's
// long and short ones.
var stateWords = map[string][]job.State{
	"PENDING": {job.OnHold, job.Queued}, "PD": {job.OnHold, job.Queued},
	"CONFIGURING": {job.Assigned, job.Starting}, "CF": {job.Assigned, job.Starting},
	"R": {job.Running}, "COMPLETING": {job.Completing, job.MustHalt, job.Halting}, "CG": {job.Completing, job.MustHalt, job.Halting},
	"COMPLETED": {job.Finished}, "CD": {job.Finished}, "F": {job.Failed}, "CA": {job.Cancelled},
	"ALL": job.States,
}

// shortStates are Slurm's letters for our states.
var shortStates = map[job.State]string{
	job.OnHold: "PD", job.Queued: "PD", job.Assigned: "CF", job.Starting: "CF", job.Running: "R",
	job.MustHalt: "CG", job.Halting: "CG", job.Halted: "HT", job.Finished: "CD", job.Failed: "F",
	job.Cancelled: "CA", job.Deleted: "RM",
}

// shortState is a job's state in Slurm's letters.
func shortState(j *api.Job) string {
	if j.Ending != nil {
		return "CG"
	}
	return shortStates[j.State]
}

// InStates says whether a job is in one of the states, or being ended where
// that is among them.
func InStates(list []job.State, j *api.Job) bool {
	return slices.Contains(list, j.State) || j.Ending != nil && slices.Contains(list, job.Completing)
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

// ParseNodes reads lists of nodes.
func ParseNodes(lists []string) ([]string, error) {
	var out []string
	for _, list := range lists {
		names, err := nodelist.Parse(list)
		if err != nil {
			return nil, exit.Usagef("node list %q: %w", list, err)
		}
		out = append(out, names...)
	}
	return out, nil
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

// foreignStates are our states in the words of other systems. The word of a
// failure may depend on its reason.
var foreignStates = map[string]struct {
	states   map[job.State]string
	failures map[job.Reason]string
	ending   string // of a job that is being ended; empty: what its state is
}{
	"gpulab1": {states: map[job.State]string{job.MustHalt: "RUNNING", job.Halting: "RUNNING", job.Halted: "FINISHED"}},
	"nvct": {
		states: map[job.State]string{
			job.OnHold: "QUEUED", job.Assigned: "LAUNCHED", job.Starting: "LAUNCHED", job.MustHalt: "RUNNING", job.Halting: "RUNNING",
			job.Halted: "QUEUED", job.Finished: "COMPLETED", job.Failed: "ERRORED", job.Cancelled: "CANCELED",
		},
		failures: map[job.Reason]string{
			job.MaxRuntime: "EXCEEDED_MAX_RUNTIME_DURATION", job.MaxQueued: "EXCEEDED_MAX_QUEUED_DURATION", job.NotAfter: "EXCEEDED_MAX_QUEUED_DURATION",
		},
	},
	"dstack": {
		states: map[job.State]string{
			job.OnHold: "submitted", job.Queued: "submitted", job.Assigned: "provisioning", job.Starting: "pulling", job.Running: "running",
			job.MustHalt: "terminating", job.Halting: "terminating", job.Halted: "submitted", job.Finished: "done", job.Failed: "failed",
			job.Cancelled: "terminated", job.Deleted: "deleted",
		},
		failures: map[job.Reason]string{job.MaxRuntime: "terminated", job.Utilization: "terminated"},
		ending:   "terminating",
	},
	"k8s": {
		states: map[job.State]string{
			job.OnHold: "Suspended", job.Queued: "Pending", job.Assigned: "Pending", job.Starting: "Pulling", job.Running: "Running",
			job.MustHalt: "Running", job.Halting: "Running", job.Halted: "Replaced", job.Finished: "Complete", job.Failed: "Failed",
			job.Cancelled: "Deleted", job.Deleted: "Deleted",
		},
		failures: map[job.Reason]string{
			job.MaxRuntime: "Failed(DeadlineExceeded)", job.MaxQueued: "Failed(DeadlineExceeded)", job.NotAfter: "Failed(DeadlineExceeded)",
		},
	},
	"tao": {states: map[job.State]string{
		job.OnHold: "Pending", job.Queued: "Pending", job.Assigned: "Pending", job.Starting: "Pending", job.Running: "Running",
		job.MustHalt: "Running", job.Halting: "Running", job.Halted: "Pending", job.Finished: "Complete", job.Failed: "Error",
		job.Cancelled: "Canceled", job.Deleted: "Terminated",
	}},
	"slurm": {
		states: map[job.State]string{
			job.OnHold: "PENDING", job.Queued: "PENDING", job.Assigned: "CONFIGURING", job.Starting: "CONFIGURING", job.MustHalt: "COMPLETING",
			job.Halting: "COMPLETING", job.Halted: "PREEMPTED", job.Finished: "COMPLETED",
		},
		failures: map[job.Reason]string{
			job.OOM: "OUT_OF_MEMORY", job.MaxRuntime: "TIMEOUT", job.NodeFail: "NODE_FAIL", job.MaxQueued: "DEADLINE", job.NotAfter: "DEADLINE",
		},
		ending: string(job.Completing),
	},
}

// CheckSystem says whether a system's words are known; empty: ours.
func CheckSystem(as string) error {
	if _, ok := foreignStates[as]; !ok && as != "" {
		return exit.Usagef("--as %s is not known: use one of %s", as, strings.Join(slices.Sorted(maps.Keys(foreignStates)), ", "))
	}
	return nil
}

// StateAs is a job's state in the words of another system; where it has none of
// its own, in ours.
func StateAs(as string, j *api.Job) string {
	f := foreignStates[as]
	switch {
	case j.Ending == nil:
	case f.ending != "":
		return f.ending
	case as == "" && j.State != job.MustHalt && j.State != job.Halting: // those say more
		return string(job.Completing)
	}
	if w, ok := f.failures[job.Reason(j.Reason)]; ok && j.State == job.Failed {
		return w
	}
	if w, ok := f.states[j.State]; ok {
		return w
	}
	return string(j.State)
}
