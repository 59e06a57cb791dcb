package state

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/job"
	"gbatch/internal/node"
)

// TestDecisive proves whose end speaks for an attempt: the first that ended badly.
func TestDecisive(t *testing.T) {
	ended := func(code int, at int64) Rank { return Rank{Exit: &node.Exit{Code: code, EndedMS: at}} }
	for name, tc := range map[string]struct {
		ranks []Rank
		want  int
	}{
		"all well":       {[]Rank{ended(0, 3), ended(0, 1)}, 0},
		"one badly":      {[]Rank{ended(0, 1), ended(1, 9), ended(0, 2)}, 1},
		"the first one":  {[]Rank{ended(1, 5), ended(0, 1), ended(2, 4)}, 2},
		"at once":        {[]Rank{ended(0, 1), ended(1, 4), ended(2, 4)}, 1},
		"one goes on":    {[]Rank{ended(0, 1), {}}, 1},
		"lost and badly": {[]Rank{{}, ended(1, 4)}, 0},
	} {
		if diff := cmp.Diff(tc.ranks[tc.want], (&Attempt{Ranks: tc.ranks}).Decisive()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestMayBegin proves when the programs of a gang begin: when all ranks are ready,
// and then in the order that the job wants.
func TestMayBegin(t *testing.T) {
	for name, tc := range map[string]struct {
		order  string
		phases []node.Phase
		ending bool
		want   []bool
	}{
		"alone":            {"", []node.Phase{node.PhaseStarting}, false, []bool{true}},
		"one not ready":    {"", []node.Phase{node.PhaseReady, node.PhaseStarting}, false, []bool{false, false}},
		"all ready":        {"", []node.Phase{node.PhaseReady, node.PhaseReady}, false, []bool{true, true}},
		"to be ended":      {"", []node.Phase{node.PhaseReady, node.PhaseReady}, true, []bool{false, false}},
		"master first":     {job.MasterFirst, []node.Phase{node.PhaseReady, node.PhaseReady}, false, []bool{true, false}},
		"master runs":      {job.MasterFirst, []node.Phase{node.PhaseRunning, node.PhaseReady}, false, []bool{true, true}},
		"workers first":    {job.WorkersFirst, []node.Phase{node.PhaseReady, node.PhaseReady, node.PhaseRunning}, false, []bool{false, true, true}},
		"all workers run":  {job.WorkersFirst, []node.Phase{node.PhaseReady, node.PhaseRunning, node.PhaseRunning}, false, []bool{true, true, true}},
		"a worker is over": {job.WorkersFirst, []node.Phase{node.PhaseReady, node.PhaseEnded}, false, []bool{true, true}},
	} {
		j := &Job{Request: &Request{StartOrder: tc.order}, Attempt: &Attempt{}}
		if tc.ending {
			j.Ending = &Ending{}
		}
		for _, p := range tc.phases {
			j.Attempt.Ranks = append(j.Attempt.Ranks, Rank{Phase: p})
		}
		var got []bool
		begun := 0
		for i := range tc.phases {
			got = append(got, j.MayBegin(i))
			if got[i] {
				begun++
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" || j.Begun() != begun {
			t.Errorf("%s: %d may begin (-want +got):\n%s", name, j.Begun(), diff)
		}
	}
}

// TestWaitsInWords proves what people and Slurm's tools read of what a job waits for.
func TestWaitsInWords(t *testing.T) {
	task := 4
	for name, tc := range map[string]struct {
		waits       Waits
		text, slurm string
	}{
		"one":     {Waits{Needs: []Need{{Type: job.AfterOK, Job: 3}}}, "waits for job 3 to finish well", "afterok:3"},
		"a task":  {Waits{Needs: []Need{{Type: job.AfterAny, Job: 3, Task: &task}}}, "waits for task 3_4 to end", "afterany:3_4"},
		"later":   {Waits{Needs: []Need{{Type: job.After, Job: 3, Delay: 120_000}}}, "waits for job 3 to have begun 2 minutes ago", "after:3+2"},
		"any":     {Waits{Any: true, Needs: []Need{{Type: job.AfterNotOK, Job: 3}, {Type: job.After, Job: 4}}}, "waits for one of: job 3 to fail, job 4 to begin", "afternotok:3?after:4"},
		"arrays":  {Waits{Tasks: []job.Number{9}}, "waits for tasks of job 9, each for the one of its index, to finish well", "aftercorr:9"},
		"by name": {Waits{Needs: []Need{{Type: job.Singleton, Job: 3}}}, "waits for job 3, an earlier one of the same name and user, to end", "singleton"},
	} {
		if diff := cmp.Diff([]string{tc.text, tc.slurm}, []string{tc.waits.Text(), tc.waits.String()}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
