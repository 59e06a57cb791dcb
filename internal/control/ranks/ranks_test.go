package ranks

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
)

// TestPull: what a pull has cost is a line of the job's history.
func TestPull(t *testing.T) {
	gpus := sched.Allocation{Node: "n1", GPUs: []sched.GPUShare{{UUID: "a", Milli: 1000}, {UUID: "b", Milli: 500}}}
	for _, tc := range []struct {
		r    state.Rank
		want string
	}{
		{state.Rank{Alloc: gpus, PullMS: 0}, ""},
		{state.Rank{Alloc: gpus, PullMS: 999}, ""},
		{state.Rank{Alloc: gpus, PullMS: 192_000}, "pulled the image in 3m12s, in which 1.5 GPUs of n1 waited"},
		{state.Rank{Alloc: sched.Allocation{Node: "n2"}, PullMS: 2000}, "pulled the image in 2s on n2"},
	} {
		if got := Pull(tc.r); got != tc.want {
			t.Errorf("%d ms: %q, want %q", tc.r.PullMS, got, tc.want)
		}
	}
}

// TestWhatItComesTo: how far an attempt is and how it ended, by its ranks.
func TestWhatItComesTo(t *testing.T) {
	type want struct {
		Least                node.Phase
		Run, OK, Unsure, Ran bool
	}
	ok, bad := &node.Exit{StartedMS: 5}, &node.Exit{Code: 1, Reason: job.ExitCode, StartedMS: 5}
	lost, untold := &node.Exit{Reason: job.NodeFail}, state.Rank{Phase: node.PhaseEnded, Exit: &node.Exit{Reason: job.NodeFail}, Unsent: true}
	for name, tc := range map[string]struct {
		ranks []state.Rank
		want  want
	}{
		"new":              {[]state.Rank{{Phase: node.PhaseAssigned}}, want{Least: node.PhaseAssigned, Ran: true}},
		"one behind":       {[]state.Rank{{Phase: node.PhaseRunning}, {Phase: node.PhasePulling}}, want{Least: node.PhasePulling, Ran: true}},
		"all run":          {[]state.Rank{{Phase: node.PhaseRunning}, {Phase: node.PhaseRunning}}, want{Least: node.PhaseRunning, Run: true, Ran: true}},
		"one ended well":   {[]state.Rank{{Phase: node.PhaseEnded, Exit: ok}, {Phase: node.PhaseRunning}}, want{Least: node.PhaseRunning, Run: true, Ran: true}},
		"ended well":       {[]state.Rank{{Phase: node.PhaseEnded, Exit: ok}}, want{Least: node.PhaseEnded, Run: true, OK: true, Ran: true}},
		"one failed":       {[]state.Rank{{Phase: node.PhaseEnded, Exit: ok}, {Phase: node.PhaseEnded, Exit: bad}}, want{Least: node.PhaseEnded, Run: true, Ran: true}},
		"lost":             {[]state.Rank{{Phase: node.PhaseEnded, Exit: lost}}, want{Least: node.PhaseEnded, Ran: true}},
		"lost, never told": {[]state.Rank{untold}, want{Least: node.PhaseEnded}},
		"never began":      {[]state.Rank{{Phase: node.PhaseEnded, Exit: &node.Exit{Reason: job.Server}}}, want{Least: node.PhaseEnded}},
		"from a backup":    {[]state.Rank{{Phase: node.PhaseRunning, Unsure: true}}, want{Least: node.PhaseRunning, Run: true, Unsure: true, Ran: true}},
	} {
		t.Run(name, func(t *testing.T) {
			at := &state.Attempt{Ranks: tc.ranks}
			got := want{OK: OK(at), Unsure: Unsure(at), Ran: Began(at)}
			got.Least, got.Run = Least(at)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
