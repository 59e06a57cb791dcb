package templates

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// table has jobs by their numbers; those of a positive time are templates that are
// due then.
func table(states map[job.Number]job.State, next map[job.Number]sched.Time) *state.Table {
	var t state.Table
	for n := job.Number(1); n < 10; n++ {
		if s := states[n]; s != "" {
			j := &state.Job{Number: n, State: s}
			if at := next[n]; at > 0 {
				j.Cron = &state.Cron{Next: at}
			}
			t.Put(n, j)
		}
	}
	return &t
}

func TestSet(t *testing.T) {
	jobs := table(
		map[job.Number]job.State{1: job.Queued, 2: job.Queued, 3: job.OnHold, 4: job.Cancelled, 5: job.Queued},
		map[job.Number]sched.Time{1: 30, 2: 20, 3: 10, 4: 10})
	var s Set
	for _, n := range []job.Number{3, 1, 4, 2} {
		s.Add(n)
	}
	s.FindNext(jobs)
	if s.Next() != 20 {
		t.Errorf("the next is due at %d, want 20: one that is held or over makes nothing", s.Next())
	}
	for _, tc := range []struct {
		now  sched.Time
		want []job.Number
	}{{19, nil}, {20, []job.Number{2}}, {31, []job.Number{1, 2}}} {
		if diff := cmp.Diff(tc.want, s.Due(tc.now, jobs)); diff != "" {
			t.Errorf("due at %d (-want +got):\n%s", tc.now, diff)
		}
	}
	if err := s.Check(jobs); err != nil {
		t.Error(err)
	}
	jobs.Put(6, &state.Job{Number: 6, State: job.OnHold, Cron: &state.Cron{Next: 1}})
	if err := s.Check(jobs); err == nil || err.Error() != "job 6 is a template that makes no jobs" {
		t.Errorf("of a template that nobody added: %v", err)
	}
	s.numbers = []job.Number{2, 1}
	if err := s.Check(jobs); err == nil || err.Error() != "templates [2 1] are not in order" {
		t.Errorf("of numbers that are not in order: %v", err)
	}
}

func TestKeepsSealed(t *testing.T) {
	jobs := table(map[job.Number]job.State{1: job.Queued, 2: job.Cancelled, 3: job.Running, 4: job.Finished}, nil)
	for name, tc := range map[string]struct {
		job  state.Job
		want bool
	}{
		"nobody's":                 {state.Job{State: job.Finished}, false},
		"continued later":          {state.Job{State: job.Halted}, true},
		"made by a template":       {state.Job{State: job.Finished, Template: 1}, true},
		"made by one that is over": {state.Job{State: job.Finished, Template: 2}, false},
		"template whose job runs":  {state.Job{State: job.Cancelled, Cron: &state.Cron{Last: 3}}, true},
		"template whose job ended": {state.Job{State: job.Cancelled, Cron: &state.Cron{Last: 4}}, false},
		"template that made none":  {state.Job{State: job.Cancelled, Cron: &state.Cron{}}, false},
	} {
		if got := KeepsSealed(&tc.job, jobs); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}
