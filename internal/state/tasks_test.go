package state

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gbatch/internal/job"
	"gbatch/sched"
)

func newTasks(tb interface{ Fatal(...any) }, asked job.Tasks) *Tasks {
	a, err := NewArray(asked)
	if err != nil {
		tb.Fatal(err)
	}
	return NewTasks(a)
}

// TestTasksAreAList proves that tasks are what a plain list of states says, also
// when they come back from the records that were written on the way and from
// history, and that a clone's changes do not reach what it was made of.
func TestTasksAreAList(t *testing.T) {
	over := []TaskState{TaskSucceeded, TaskFailed, TaskCancelled, TaskMissed}
	rapid.Check(t, func(t *rapid.T) {
		asked := job.Tasks{Indexes: rapid.SampledFrom([]string{"5", "0-9", "1-3,7,900-2000", "0-1500"}).Draw(t, "indexes"), EnoughIndexes: "1-5"}
		tasks := newTasks(t, asked)
		want := make([]TaskState, tasks.Len())
		stored := map[uint64]Record{0: {Kind: KindTasks, Value: Encode(asked)}}
		for range rapid.IntRange(0, 8).Draw(t, "steps") {
			before, was := tasks, slices.Clone(want)
			tasks = tasks.Clone()
			to := rapid.SampledFrom(append(over, TaskLive)).Draw(t, "to")
			first := rapid.IntRange(0, len(want)-1).Draw(t, "first")
			for at := first; at < min(first+rapid.SampledFrom([]int{1, 2, 800}).Draw(t, "many"), len(want)); at++ {
				if slices.Contains(over, want[at]) {
					continue // it stays so
				}
				tasks.Set(at, to)
				want[at] = to
			}
			checkTasks(t, before, was)
			_, records := tasks.TakeChanges(1, true)
			for _, r := range records {
				stored[r.Seq] = r
			}
		}
		checkTasks(t, tasks, want)

		var records []Record
		for _, r := range stored {
			records = append(records, r)
		}
		loaded, err := LoadTasks(records, &Tasks{})
		if err != nil {
			t.Fatal(err)
		}
		checkTasks(t, loaded, want)

		if slices.Contains(want, TaskLive) || slices.Contains(want, TaskPending) {
			return // only what is over moves to history
		}
		j := &Job{Number: 1, Tasks: tasks, State: job.Failed, Owner: &Owner{}, Request: &Request{Shape: &sched.Shape{}}}
		back, err := DecodeJob(j.EncodeHistory())
		if err != nil {
			t.Fatal(err)
		}
		checkTasks(t, back.Tasks, want)
	})
}

func checkTasks(t *rapid.T, tasks *Tasks, want []TaskState) {
	got, counts, enough := make([]TaskState, tasks.Len()), map[TaskState]int{}, 0
	for at := range got {
		got[at], _ = tasks.State(tasks.Index(at))
		counts[got[at]]++
		if got[at] == TaskSucceeded && tasks.Array.Enough.Has(tasks.Index(at)) {
			enough++
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("states (-want +got):\n%s", diff)
	}
	for s, n := range tasks.Counts {
		if n != counts[s] || tasks.In(s).Len() != n {
			t.Fatalf("it counts %d tasks in state %q and names %s, want %d", n, s, tasks.In(s), counts[s])
		}
	}
	if tasks.Enough != enough {
		t.Fatalf("it counts %d as enough, want %d", tasks.Enough, enough)
	}
	at, ok := tasks.Clone().NextPending()
	if first := slices.Index(want, TaskPending); ok != (first >= 0) || ok && at != first {
		t.Fatalf("the next pending task is at %d, %t, want %d", at, ok, first)
	}
}

// TestLoadTasksRefuses proves that records which no array has written are errors.
func TestLoadTasksRefuses(t *testing.T) {
	asked := Record{Kind: KindTasks, Value: Encode(job.Tasks{Indexes: "0-9"})}
	block := func(seq uint64, value string) Record { return Record{Kind: KindTasks, Seq: seq, Value: []byte(value)} }
	for name, tc := range map[string]struct {
		records []Record
		want    string
	}{
		"nothing":     {nil, "the record of its tasks is missing"},
		"only states": {[]Record{block(1, "..........")}, "the record of its tasks is missing"},
		"no JSON":     {[]Record{{Kind: KindTasks, Value: []byte("{")}}, "decode its tasks: unexpected end of JSON input"},
		"too short":   {[]Record{asked, block(1, "...")}, "the record of block 0 of its tasks is malformed"},
		"no letter":   {[]Record{asked, block(1, ".........x")}, "the record of block 0 of its tasks is malformed"},
		"beyond":      {[]Record{asked, block(2, "..........")}, "the record of block 1 of its tasks is malformed"},
	} {
		if _, err := LoadTasks(tc.records, &Tasks{}); err == nil || err.Error() != tc.want {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
	}
}
