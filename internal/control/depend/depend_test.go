package depend

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// TestJudge proves what becomes of each kind of condition in each state of the job
// that it is about.
func TestJudge(t *testing.T) {
	const now = 1000
	jobs := map[string]*state.Job{
		"waits":    {State: job.Queued},
		"runs":     {State: job.Running, Started: 700},
		"ran once": {State: job.Queued, UsedRun: 5},
		"finished": {State: job.Finished, Started: 700},
		"failed":   {State: job.Failed, Started: 700},
		"never":    {State: job.Cancelled},
	}
	for _, tc := range []struct{ kind, of, want string }{
		{job.After, "waits", "undecided"}, {job.After, "runs", "met at 710"}, {job.After, "ran once", "met at 1010"},
		{job.After, "failed", "met at 710"}, {job.After, "never", "met at 1010"},
		{job.AfterOK, "waits", "undecided"}, {job.AfterOK, "runs", "undecided"}, {job.AfterOK, "finished", "met at 1000"},
		{job.AfterOK, "failed", "impossible"}, {job.AfterOK, "never", "impossible"},
		{job.AfterCorr, "finished", "met at 1000"}, {job.AfterCorr, "failed", "impossible"},
		{job.AfterNotOK, "runs", "undecided"}, {job.AfterNotOK, "finished", "impossible"},
		{job.AfterNotOK, "failed", "met at 1000"}, {job.AfterNotOK, "never", "met at 1000"},
		{job.AfterAny, "runs", "undecided"}, {job.AfterAny, "failed", "met at 1000"}, {job.AfterAny, "finished", "met at 1000"},
		{job.Singleton, "ran once", "undecided"}, {job.Singleton, "never", "met at 1000"},
	} {
		outcome, at := Judge(state.Need{Type: tc.kind, Delay: 10}, now, jobs[tc.of])
		got := map[Outcome]string{Undecided: "undecided", Met: fmt.Sprint("met at ", at), Impossible: "impossible"}[outcome]
		if got != tc.want {
			t.Errorf("%s on a job that %s: %s, want %s", tc.kind, tc.of, got, tc.want)
		}
	}
}

// TestUpdate proves what is left to wait for when one of several jobs has ended.
func TestUpdate(t *testing.T) {
	ok, notOK := state.Need{Type: job.AfterOK, Job: 1}, state.Need{Type: job.AfterNotOK, Job: 1}
	other := state.Need{Type: job.AfterAny, Job: 2}
	one := state.Need{Type: job.Singleton, Job: 1}
	moved := one
	moved.Job = 5
	finished := &state.Job{Number: 1, State: job.Finished}
	missed := notOK.Missed(finished)
	for name, tc := range map[string]struct {
		waits   state.Waits
		next    job.Number
		want    state.Waits
		changed bool
		why     string
	}{
		"another's":           {state.Waits{Needs: []state.Need{other}}, 0, state.Waits{Needs: []state.Need{other}}, false, ""},
		"the last":            {state.Waits{Needs: []state.Need{ok}}, 0, state.Waits{Met: true, Since: 9}, true, ""},
		"one of two":          {state.Waits{Needs: []state.Need{ok, other}}, 0, state.Waits{Needs: []state.Need{other}, Since: 9}, true, ""},
		"enough":              {state.Waits{Any: true, Needs: []state.Need{ok, other}}, 0, state.Waits{Any: true, Met: true, Since: 9, Needs: []state.Need{other}}, true, ""},
		"impossible":          {state.Waits{Needs: []state.Need{notOK, other}}, 0, state.Waits{Needs: []state.Need{other}}, true, missed},
		"another is enough":   {state.Waits{Any: true, Needs: []state.Need{notOK, other}}, 0, state.Waits{Any: true, Needs: []state.Need{other}}, true, ""},
		"none is left of any": {state.Waits{Any: true, Needs: []state.Need{notOK}}, 0, state.Waits{Any: true}, true, missed},
		"the next of a name":  {state.Waits{Needs: []state.Need{one}}, 5, state.Waits{Needs: []state.Need{moved}}, true, ""},
	} {
		got, changed, why := Update(tc.waits, 9, finished, func(state.Need) job.Number { return tc.next })
		if diff := cmp.Diff(tc.want, got); diff != "" || changed != tc.changed || why != tc.why {
			t.Errorf("%s: changed %t, %q (-want +got):\n%s", name, changed, why, diff)
		}
	}
}

// TestNotifiedGoesOn proves that each dependent hears once of each end, however
// many are told at a time, and that some may be added and dropped on the way.
func TestNotifiedGoesOn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, want, got := NewSet(), map[[2]job.Number]bool{}, map[[2]job.Number]bool{}
		for n := job.Number(10); n < 20; n++ {
			j := &state.Job{Number: n, State: job.Queued, Waits: &state.Waits{}}
			for of := job.Number(1); of <= 3; of++ {
				if rapid.Bool().Draw(t, "waits") {
					j.Waits.Needs = append(j.Waits.Needs, state.Need{Type: job.AfterAny, Job: of})
					want[[2]job.Number{n, of}] = true
				}
			}
			s.Add(j)
		}
		for of := job.Number(1); of <= 3; of++ {
			s.Notify(of)
		}
		for most := rapid.IntRange(1, 40).Draw(t, "most"); s.Pending(); {
			done := 0
			s.Notified(most, func(waiting, awaited job.Number) {
				if done++; done > most || got[[2]job.Number{waiting, awaited}] {
					t.Fatalf("job %d hears of job %d as number %d of at most %d", waiting, awaited, done, most)
				}
				got[[2]job.Number{waiting, awaited}] = true
				s.Drop(&state.Job{Number: waiting, State: job.Queued, Waits: &state.Waits{Needs: []state.Need{{Job: awaited}}}})
			})
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("who heard (-want +got):\n%s", diff)
		}
	})
}

// TestEarlier proves that the singletons' index says what a look at all jobs does.
func TestEarlier(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var jobs state.Table
		var all []*state.Job
		s := NewSet()
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			name := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name")
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0: // one ends
				if len(all) > 0 {
					i := rapid.IntRange(0, len(all)-1).Draw(t, "which")
					over := *all[i]
					over.State = job.Finished
					all[i] = &over
					jobs.Put(over.Number, &over)
				}
			case 1:
				before := job.Number(rapid.IntRange(1, len(all)+1).Draw(t, "before"))
				want := job.Number(0)
				for _, j := range all {
					if j.Name == name && j.State == job.Queued && j.Parent == 0 && j.Number < before {
						want = j.Number
					}
				}
				if got := s.Earlier(name, "ann", before, &jobs); got != want {
					t.Fatalf("the last %q before job %d is %d, want %d", name, before, got, want)
				}
			default:
				j := &state.Job{Number: job.Number(len(all) + 1), Name: name, Owner: &state.Owner{User: "ann"}, State: job.Queued, Parent: job.Number(rapid.IntRange(0, 1).Draw(t, "task"))}
				all = append(all, j)
				jobs.Put(j.Number, j)
				s.AddName(j, &jobs)
			}
		}
	})
}

// TestCheckFindsWhatIsWrong proves that the check fails on an index that is not
// right, and on who waits for a job that is over and does not hear of it.
func TestCheckFindsWhatIsWrong(t *testing.T) {
	waits := func(of job.Number) *state.Job {
		return &state.Job{Number: 2, State: job.Queued, Waits: &state.Waits{Needs: []state.Need{{Type: job.AfterAny, Job: of}}}}
	}
	for name, tc := range map[string]struct {
		jobs  []*state.Job
		known []*state.Job
		want  string
	}{
		"right":     {[]*state.Job{{Number: 1, State: job.Running}, waits(1)}, []*state.Job{waits(1)}, ""},
		"unknown":   {[]*state.Job{{Number: 1, State: job.Running}, waits(1)}, nil, "the index of who waits for whom has 0 jobs, want 1, or others"},
		"gone":      {[]*state.Job{waits(1)}, []*state.Job{waits(1)}, "job 2 waits for job 1, which is not in the table"},
		"over":      {[]*state.Job{{Number: 1, State: job.Failed}, waits(1)}, []*state.Job{waits(1)}, "job 2 waits for job 1, and job 1 is FAILED"},
		"left over": {[]*state.Job{{Number: 1, State: job.Running}}, []*state.Job{waits(1)}, "the index of who waits for whom has 1 jobs, want 0, or others"},
	} {
		var jobs state.Table
		for _, j := range slices.Backward(tc.jobs) {
			jobs.Put(j.Number, j)
		}
		s := NewSet()
		for _, j := range tc.known {
			s.Add(j)
		}
		got := ""
		if err := s.Check(&jobs); err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// TestSince proves when a job may start by what it waits for.
func TestSince(t *testing.T) {
	for name, tc := range map[string]struct {
		waits *state.Waits
		want  sched.Time
	}{
		"for nothing": {nil, 0}, "still": {&state.Waits{Since: 5}, never}, "no more": {&state.Waits{Met: true, Since: 5}, 5},
	} {
		if got := Since(tc.waits); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}
