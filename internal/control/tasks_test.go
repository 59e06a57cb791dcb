package control

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gbatch/internal/job"
	"gbatch/internal/job/indexes"
	"gbatch/internal/state"
)

// document puts the lines below a submission into its document.
func (w *world) document(spec *job.Spec, d *datadriven.TestData) {
	var doc struct {
		Gbatch *job.Gbatch
		Limit  int
	}
	doc.Gbatch = spec.Gbatch
	if err := json.Unmarshal([]byte(d.Input), &doc); err != nil {
		w.t.Fatalf("%s: %v", d.Pos, err)
	}
	spec.Gbatch, spec.Request.Scheduling.MaxDuration = doc.Gbatch, job.Duration(doc.Limit)
}

func (w *world) actTasks(action, text string, arg func(string, string) string) string {
	n, set, ok := state.ParseTask(text)
	if !ok {
		w.t.Fatalf("%q names no tasks", text)
	}
	o := w.apply(ActTasks{Act: Act{Action: Action(action), By: arg("by", "ann"), Operator: arg("operator", "") != ""}, Parent: n, Indexes: set}).(Result)
	return w.answer([]Result{o})
}

func (w *world) tasks(t *state.Tasks) string {
	var parts []string
	for _, s := range []struct {
		name  string
		state state.TaskState
	}{{"pending", state.TaskPending}, {"live", state.TaskLive}, {"succeeded", state.TaskSucceeded}, {"failed", state.TaskFailed}, {"cancelled", state.TaskCancelled}, {"missed", state.TaskMissed}} {
		if set := t.In(s.state); len(set) > 0 {
			parts = append(parts, s.name+" "+set.String())
		}
	}
	return strings.Join(parts, ", ")
}

// TestTasksAreASet: the states of tasks, kept in blocks, are those of a plain
// map, whatever the indexes are; and they are the same after they were stored
// both ways.
func TestTasksAreASet(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		asked := job.Tasks{Indexes: rapid.SampledFrom([]string{"0-9", "3,5,7-20:2", "0-2000", "0-9000:7", "100,200-1500,5000"}).Draw(rt, "indexes")}
		a, err := state.NewArray(asked)
		if err != nil {
			rt.Fatal(err)
		}
		got, want := state.NewTasks(a), map[int]state.TaskState{}
		w := newWorld(t)
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			got = got.Clone()
			from := rapid.IntRange(0, got.Len()-1).Draw(rt, "from")
			s := rapid.SampledFrom([]state.TaskState{state.TaskLive, state.TaskSucceeded, state.TaskFailed, state.TaskCancelled, state.TaskMissed}).Draw(rt, "state")
			for p := from; p < min(from+rapid.SampledFrom([]int{1, 3, 600}).Draw(rt, "many"), got.Len()); p++ {
				got.Set(p, s)
				want[a.Index(p)] = s
			}
			under := w.c.begin(w.now)
			under.jobs.storeTasks(1, got)
			w.store(under.out.Set)
		}
		for p := range got.Len() {
			i := a.Index(p)
			if back, ok := a.Position(i); !ok || back != p {
				rt.Fatalf("position of %d is %d, %t, want %d", i, back, ok, p)
			}
			if s, ok := got.State(i); !ok || s != want[i] {
				rt.Fatalf("task %d is %q, want %q", i, s, want[i])
			}
		}
		checkTaskSets(rt, got, want)
		v, _ := json.Marshal(asked)
		records := []state.Record{{Kind: state.KindTasks, Job: 1, Value: v}}
		for _, r := range w.stored {
			records = append(records, r)
		}
		loaded, err := state.LoadTasks(records, got)
		if err != nil {
			rt.Fatal(err)
		}
		checkTaskSets(rt, loaded, want)
	})
}

func checkTaskSets(rt *rapid.T, got *state.Tasks, want map[int]state.TaskState) {
	var sets indexes.Set
	for _, s := range []state.TaskState{state.TaskPending, state.TaskLive, state.TaskSucceeded, state.TaskFailed, state.TaskCancelled, state.TaskMissed} {
		set := got.In(s)
		if set.Len() != got.Counts[s] {
			rt.Fatalf("%d tasks are %q, counted %d", set.Len(), s, got.Counts[s])
		}
		for _, r := range set {
			for i := r.First; i <= r.Last; i++ {
				if want[i] != s {
					rt.Fatalf("task %d is in the set of %q, want %q", i, s, want[i])
				}
			}
		}
		sets = append(sets, set...)
	}
	if sets.Len() != got.Len() {
		rt.Fatalf("the sets have %d tasks of %d", sets.Len(), got.Len())
	}
}

// TestTaskUUID: a task's UUID never changes, and is a proper one.
func TestTaskUUID(t *testing.T) {
	got := fmt.Sprintf("%x %x", (&state.Job{UUID: state.UUID{1}}).TaskUUID(7), (&state.Job{UUID: state.UUID{1}}).TaskUUID(8))
	if diff := cmp.Diff("06f0f2916f5d52c680f1c6559d2fac18 222e292264e6540699b516c31566a4aa", got); diff != "" {
		t.Error(diff)
	}
}
