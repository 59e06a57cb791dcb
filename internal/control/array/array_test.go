package array

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gbatch/internal/job"
	"gbatch/internal/state"
)

func newTasks(tb interface{ Fatal(...any) }, asked job.Tasks, states string) *state.Tasks {
	a, err := state.NewArray(asked)
	if err != nil {
		tb.Fatal(err)
	}
	t := state.NewTasks(a)
	for at, s := range states {
		if s != '.' {
			t.Set(at, state.TaskState(s))
		}
	}
	return t
}

// TestWhatAnArrayComesTo proves when an array ends before all of its tasks are
// over, and how it ends when they are.
func TestWhatAnArrayComesTo(t *testing.T) {
	two := 2
	for name, tc := range map[string]struct {
		asked   job.Tasks
		states  string // of five tasks, as they are stored
		ending  *state.Ending
		cut     string
		outcome string
	}{
		"all well":           {job.Tasks{}, "sssss", nil, "", "FINISHED  "},
		"one failed":         {job.Tasks{}, "sfsss", nil, "", "FAILED FAILED_INDEXES 1 of 5 tasks failed: 1"},
		"fail fast":          {job.Tasks{FailFast: true}, "sf...", nil, "FAILED FAILED_INDEXES 1 of 5 tasks failed: 1", ""},
		"as many as may":     {job.Tasks{MaxFailed: &two}, "ffsss", nil, "", "FAILED FAILED_INDEXES 2 of 5 tasks failed: 0-1"},
		"more than may":      {job.Tasks{MaxFailed: &two}, "fff..", nil, "FAILED FAILED_INDEXES 3 of 5 tasks failed: 0-2", ""},
		"enough":             {job.Tasks{EnoughCount: 2}, "ss...", nil, "FINISHED  2 of its tasks have succeeded, which is enough", ""},
		"these are enough":   {job.Tasks{EnoughIndexes: "1,3"}, ".s.s.", nil, "FINISHED  2 of its tasks have succeeded, which is enough", ""},
		"others are not":     {job.Tasks{EnoughIndexes: "1,3"}, "s.ss.", nil, "", ""},
		"one was cancelled":  {job.Tasks{}, "scsss", nil, "", "CANCELLED USER tasks 1 were cancelled"},
		"could never start":  {job.Tasks{}, "ssssd", nil, "", "CANCELLED DEPENDENCY tasks that did not run: 4; what each waited for has not finished well"},
		"and one failed":     {job.Tasks{}, "sfssd", nil, "", "FAILED FAILED_INDEXES 1 of 5 tasks failed: 1"},
		"no failure":         {job.Tasks{FailFast: true}, "sss.d", nil, "", ""},
		"more failed since":  {job.Tasks{}, "ffccc", &state.Ending{Then: job.Failed, Reason: job.FailedIndexes, Text: "1 of 5"}, "", "FAILED FAILED_INDEXES 2 of 5 tasks failed: 0-1"},
		"was to be this way": {job.Tasks{}, "sfccc", &state.Ending{Then: job.Cancelled, Reason: job.ByUser, Text: "cancelled by ann"}, "", "CANCELLED USER cancelled by ann"},
	} {
		tc.asked.Indexes = "0-4"
		p := &state.Job{Number: 1, State: job.Queued, Tasks: newTasks(t, tc.asked, tc.states), Ending: tc.ending}
		words := func(e *state.Ending) string { return fmt.Sprintf("%s %s %s", e.Then, e.Reason, e.Text) }
		got := ""
		if how := (&Array{}).Cut(p); how != nil {
			got = words(how)
		}
		if got != tc.cut {
			t.Errorf("%s: it is cut as %q, want %q", name, got, tc.cut)
		}
		if p.Tasks.Counts[state.TaskPending] > 0 {
			continue
		}
		if how := Ending(p); words(&how) != tc.outcome {
			t.Errorf("%s: it ends as %q, want %q", name, words(&how), tc.outcome)
		}
	}
}

// TestWindow proves how many tasks may be jobs at a time, and that what becomes of
// children is counted: the window has room again when one of them starts or ends.
func TestWindow(t *testing.T) {
	s := NewSet()
	p := &state.Job{Number: 1, State: job.Queued, Tasks: newTasks(t, job.Tasks{Indexes: "0-999", Parallelism: 300}, "")}
	var jobs state.Table
	jobs.Put(1, p)
	s.Add(p, &jobs)
	a := s.Of(1)
	child := func(i int, st job.State) *state.Job {
		return &state.Job{Number: job.Number(10 + i), Parent: 1, Index: i, State: st}
	}
	n := 0
	for a.Room(p.Tasks) {
		s.Live(child(n, job.Queued))
		n++
	}
	if n != maxWaiting {
		t.Errorf("%d tasks wait as jobs, want %d", n, maxWaiting)
	}
	for i := range 100 { // these start: others may wait, but no more than 300 are live
		s.TaskChanged(child(i, job.Queued), child(i, job.Assigned))
	}
	for a.Room(p.Tasks) {
		s.Live(child(n, job.Queued))
		n++
	}
	if n != 300 {
		t.Errorf("%d tasks are live, want 300", n)
	}
	tried := child(200, job.Queued)
	tried.Retried = &state.Retried{}
	s.TaskChanged(child(200, job.Queued), tried) // it waits for another try, and counts apart
	s.TaskChanged(child(0, job.Running), child(0, job.Finished))
	if !a.Room(p.Tasks) || a.waiting != 199 || a.delayed != 1 {
		t.Errorf("%d tasks wait and %d for another try, room %t; want 199, 1 and room", a.waiting, a.delayed, a.Room(p.Tasks))
	}
	if diff := cmp.Diff([]job.Number{10}, a.Ended); diff != "" {
		t.Errorf("ended (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]job.Number{1}, s.Changed()); diff != "" || s.Pending() {
		t.Errorf("to be looked at (-want +got):\n%s", diff)
	}
}

// TestTasksWaitOneByOne proves that a task of an array may start when, and only
// when, that of its index in another array has finished well, and that one for
// which this cannot come true is over.
func TestTasksWaitOneByOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := NewSet()
		var jobs state.Table
		q := &state.Job{Number: 1, State: job.Queued, Tasks: newTasks(t, job.Tasks{Indexes: "0-9"}, "")}
		p := &state.Job{Number: 2, State: job.Queued, Tasks: newTasks(t, job.Tasks{Indexes: "2-7"}, ""), Waits: &state.Waits{Met: true, Tasks: []job.Number{1}}}
		for _, j := range []*state.Job{q, p} {
			jobs.Put(j.Number, j)
			s.Add(j, &jobs)
		}
		a := s.Of(2)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			next := *q
			next.Tasks = q.Tasks.Clone()
			for _, at := range rapid.SliceOfNDistinct(rapid.IntRange(0, 9), 0, 3, rapid.ID).Draw(t, "moves") {
				if st := next.Tasks.At(at); st == state.TaskPending || st == state.TaskLive {
					next.Tasks.Set(at, rapid.SampledFrom([]state.TaskState{state.TaskLive, state.TaskSucceeded, state.TaskFailed, state.TaskCancelled}).Draw(t, "to"))
				}
			}
			indexes, _ := next.Tasks.TakeChanges(1, false)
			q = &next
			jobs.Put(1, q)
			s.TasksChanged(1, indexes)

			mine := *p
			mine.Tasks = p.Tasks.Clone()
			a.TakeInAwaited(p, mine.Tasks, &jobs)
			for range rapid.IntRange(0, 2).Draw(t, "starts") {
				at, ok := a.Next(p, mine.Tasks)
				if !ok {
					break
				}
				mine.Tasks.Set(at, state.TaskLive)
			}
			p = &mine
			jobs.Put(2, p)

			most := 0 // how many may start and have not
			for i := 2; i <= 7; i++ {
				is, _ := p.Tasks.State(i)
				of, _ := q.Tasks.State(i)
				over := of == state.TaskFailed || of == state.TaskCancelled
				if is == state.TaskLive && of != state.TaskSucceeded || (is == state.TaskMissed) != over {
					t.Fatalf("task %d is %q, that which it waits for %q", i, is, of)
				}
				if is == state.TaskPending && of == state.TaskSucceeded {
					most++
				}
			}
			if len(a.ready) != most {
				t.Fatalf("%d tasks are ready, want %d", len(a.ready), most)
			}
			if err := s.checkAwaited(&jobs); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestRefuse proves which jobs' tasks cannot wait for each other one by one.
func TestRefuse(t *testing.T) {
	s := NewSet()
	crowded := &state.Job{Number: 9, Tasks: newTasks(t, job.Tasks{Indexes: "0-4"}, "")}
	for n := range job.Number(MaxAwaited) {
		s.waiters[9] = append(s.waiters[9], 100+n)
	}
	array := &state.Job{Number: 1, Tasks: newTasks(t, job.Tasks{Indexes: "0-4"}, "")}
	for name, tc := range map[string]struct {
		tasks string // of the new job; empty: it has none
		on    *state.Job
		any   bool
		want  string
	}{
		"fits":            {"1-3", array, false, ""},
		"no tasks":        {"", array, false, "job 1 has tasks and this one has none, so that they cannot wait for each other one by one"},
		"on a plain job":  {"1-3", &state.Job{Number: 1}, false, "job 1 has no tasks, for which those of this one could wait one by one"},
		"any":             {"1-3", array, true, "tasks that wait one by one wait for all that is named"},
		"others":          {"3-6", array, false, "tasks 5-6 would wait for tasks that job 1 does not have: its tasks are 0-4"},
		"too many others": {"1-3", crowded, false, "100 arrays wait already for the tasks of job 1 one by one"},
	} {
		var tasks *state.Tasks
		if tc.tasks != "" {
			tasks = newTasks(t, job.Tasks{Indexes: tc.tasks}, "")
		}
		got := ""
		if r := s.Refuse(tasks, tc.on, "1", tc.any); r != nil {
			got = r.Message
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
