package state

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gbatch/internal/job"
)

// TestTableIsAMap proves that a table holds what was put into it, in the order of
// the numbers, whatever comes between, and that a snapshot stays as it was.
func TestTableIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table Table
		want := map[job.Number]uint64{}
		type snapshot struct {
			table Table
			want  map[job.Number]uint64
		}
		var taken []snapshot
		for i := range rapid.IntRange(1, 60).Draw(t, "steps") {
			n := job.Number(rapid.SampledFrom([]int{1, 2, 255, 256, 257, 5000, 5001}).Draw(t, "number"))
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				table.Put(n, nil)
				delete(want, n)
			case 1:
				table.Trim()
			case 2:
				taken = append(taken, snapshot{table.Snapshot(), maps.Clone(want)})
			default:
				state := rapid.SampledFrom([]job.State{job.Queued, job.Running, job.Finished}).Draw(t, "state")
				table.Put(n, &Job{Number: n, Version: uint64(i), State: state})
				want[n] = uint64(i)
			}
		}
		for i, s := range append(taken, snapshot{table, want}) {
			var numbers []job.Number
			states := map[job.State]int{}
			for j := range s.table.All() {
				if j != s.table.Get(j.Number) || j.Version != s.want[j.Number] {
					t.Fatalf("snapshot %d: job %d is of version %d, want %d", i, j.Number, j.Version, s.want[j.Number])
				}
				numbers = append(numbers, j.Number)
				states[j.Status()]++
			}
			if diff := cmp.Diff(slices.Sorted(maps.Keys(s.want)), numbers); diff != "" {
				t.Fatalf("snapshot %d (-want +got):\n%s", i, diff)
			}
			checkPages(t, &s.table)
			v := &View{Jobs: s.table}
			if v.Len() != len(numbers) {
				t.Fatalf("snapshot %d counts %d jobs, want %d", i, v.Len(), len(numbers))
			}
			if diff := cmp.Diff(states, v.States()); diff != "" {
				t.Fatalf("snapshot %d, jobs by state (-want +got):\n%s", i, diff)
			}
		}
	})
}

// checkPages proves that those that are not over, and page by page those that are, come to all.
func checkPages(t *rapid.T, table *Table) {
	var live, ended, back []*Job
	for j := range table.All() {
		if j.State.Final() {
			ended = append(ended, j)
		} else {
			live = append(live, j)
		}
	}
	if got := slices.Collect(table.Live()); !slices.Equal(live, got) {
		t.Fatalf("%d jobs are not over, want %d", len(got), len(live))
	}
	var forth []*Job
	last := -1
	for n, p := range table.Pages() {
		if int(n) <= last {
			t.Fatalf("page %d comes after page %d", n, last)
		}
		last = int(n)
		forth = append(forth, slices.Collect(p.Ended(false))...)
		back = append(slices.Collect(p.Ended(true)), back...)
	}
	slices.Reverse(back)
	if !slices.Equal(ended, forth) || !slices.Equal(ended, back) {
		t.Fatalf("%d jobs are over, and %d from the last one back; want %d", len(forth), len(back), len(ended))
	}
	if err := table.Check(); err != nil {
		t.Fatal(err)
	}
}

// TestFind proves which words lead to which job.
func TestFind(t *testing.T) {
	array := &Job{Number: 7, UUID: UUID{0xab, 0xcd, 0xef, 0x10}, Tasks: newTasks(t, job.Tasks{Indexes: "1-4"})}
	array.Tasks.Set(0, TaskLive)
	array.Tasks.Set(3, TaskSucceeded)
	var v View
	for _, j := range []*Job{
		{Number: 3, UUID: UUID{0xab, 0xcd, 0xef, 0x01}}, array, {Number: 8, UUID: UUID{1, 2, 3}, Parent: 7, Index: 1},
	} {
		v.Jobs.Put(j.Number, j)
	}
	for text, want := range map[string]string{
		"3":                    "3",
		"7":                    "7",
		"8":                    "7_1",
		"7_1":                  "7_1",
		"7_2":                  "7_2",
		"abcdef01":             "3",
		"ABCD-EF10":            "7",
		"0102-03":              "7_1",
		"4":                    "there is no job 4",
		"0":                    `"0" is no job id`,
		"3_1":                  "job 3 has no tasks",
		"4_1":                  "there is no job 4_1",
		"7_4":                  "there is no job 7_4",
		"7_5":                  "job 7 has no task 5",
		"abcdef":               `"abcdef" begins the UUID of jobs 3 and 7`,
		"abcde":                `"abcde" is no job id`,
		"abcdef02":             "there is no job abcdef02",
		"last":                 `"last" is no job id`,
		"99999999999999999999": "there is no job 99999999999999999999",
	} {
		j, refusal := v.Find(text)
		got := ""
		if refusal != nil {
			got = refusal.Message
		} else {
			got = j.ID()
		}
		if got != want {
			t.Errorf("%q leads to %q, want %q", text, got, want)
		}
	}
}
