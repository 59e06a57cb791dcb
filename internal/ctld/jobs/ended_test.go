package jobs

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gbatch/internal/job"
	"gbatch/internal/job/indexes"
	"gbatch/internal/state"
	"gbatch/sched"
)

// TestPart: what a list shows is what is left of all jobs, in order, when those are left out that the filter does not select
// and tasks that their array's line stands for; whatever was counted of other views before.
func TestPart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table state.Table
		s := &Queries{}
		for range rapid.IntRange(1, 3).Draw(t, "views") {
			for range rapid.IntRange(0, 30).Draw(t, "changes") {
				drawJob(t, &table)
			}
			o := s.order(&state.View{Jobs: table.Snapshot()})
			for range 3 {
				f := drawFilter(t)
				ask := searchFor(&f, func(o *state.Owner) bool { return o.User == "bob" })
				rows, total, below := o.part(ask)
				want, wantTotal, wantBelow := wholePart(o, ask)
				if got := numbersOf(rows); !slices.Equal(want, got) || total != wantTotal {
					t.Fatalf("%+v lists %d of %d, want %d of %d", f, got, total, want, wantTotal)
				}
				for _, n := range want {
					if below[n] != wantBelow[n] {
						t.Fatalf("%+v: %d tasks are below %d, want %d", f, below[n], n, wantBelow[n])
					}
				}
			}
		}
	})
}

// drawJob puts a job into a table, or takes one out, on one of few pages.
func drawJob(t *rapid.T, table *state.Table) {
	n := job.Number(256*rapid.IntRange(1, 3).Draw(t, "page") + rapid.IntRange(0, 9).Draw(t, "place"))
	user := rapid.SampledFrom([]string{"ann", "bob", "eve"}).Draw(t, "user")
	j := &state.Job{
		Number: n, Name: "a", Owner: &state.Owner{User: user, Project: "p"}, Request: &state.Request{Shape: &sched.Shape{}},
		State: rapid.SampledFrom(job.States).Draw(t, "state"),
	}
	if j.State.Active() {
		j.Attempt = &state.Attempt{Attempt: 1, Ranks: []state.Rank{{Stopping: rapid.Bool().Draw(t, "stopping")}}}
	}
	if n%256 == 0 { // of each page the first is an array
		all, err := indexes.Parse("0-9")
		if err != nil {
			t.Fatal(err)
		}
		j.Tasks = state.NewTasks(&state.Array{All: all})
		j.First = sched.Time(rapid.IntRange(0, 1).Draw(t, "begun"))
	} else if of := rapid.IntRange(0, 3).Draw(t, "array"); of > 0 {
		j.Parent, j.Index = min(job.Number(256*of), n/256*256), int(n%256)
	}
	if rapid.IntRange(0, 9).Draw(t, "gone") == 0 {
		j = nil
	}
	table.Put(n, j)
}

func drawFilter(t *rapid.T) filter {
	f := filter{
		User:   rapid.SampledFrom([]string{"", "ann", "bob", "none"}).Draw(t, "of"),
		All:    rapid.Bool().Draw(t, "all"),
		Fold:   rapid.Bool().Draw(t, "fold"),
		Newest: rapid.Bool().Draw(t, "newest"),
		Limit:  rapid.IntRange(0, 9).Draw(t, "limit"),
		Offset: rapid.SampledFrom([]int{0, 0, 1, 5, 99}).Draw(t, "offset"),
	}
	if rapid.IntRange(0, 2).Draw(t, "more") == 0 {
		f.State = rapid.SampledFrom([]string{"", "running", "FINISHED,QUEUED", "COMPLETING", ","}).Draw(t, "states")
		f.Text = rapid.SampledFrom([]string{"", "ann", "a queued"}).Draw(t, "text")
		f.Array = rapid.SampledFrom([]uint64{0, 256}).Draw(t, "tasks of")
	}
	return f
}

// wholePart is part by a look at all jobs.
func wholePart(o *ordered, f *search) (rows []job.Number, total int, below map[job.Number]int) {
	var groups [3][]*state.Job
	for j := range o.view.All() {
		switch {
		case j.State.Active():
			groups[0] = append(groups[0], j)
		case j.State.Pending():
			groups[1] = append(groups[1], j)
		case f.All || f.State != "":
			groups[2] = append(groups[2], j)
		}
	}
	if f.Newest {
		slices.Reverse(groups[2])
	}
	below = map[job.Number]int{}
	for _, j := range slices.Concat(groups[:]...) {
		p := o.view.Job(j.Parent)
		switch {
		case !o.lists(j, f):
		case f.Fold && f.Array == 0 && p != nil && (f.All || f.State != "" || !p.State.Final()) && o.lists(p, f):
			below[p.Number]++
		default:
			rows = append(rows, j.Number)
		}
	}
	total = len(rows)
	rows = rows[min(f.Offset, total):]
	if f.Limit > 0 {
		rows = rows[:min(f.Limit, len(rows))]
	}
	return rows, total, below
}

func numbersOf(list []*state.Job) (out []job.Number) {
	for _, j := range list {
		out = append(out, j.Number)
	}
	return out
}

// TestCountedOnce: what was counted of a page is not counted again while it is the same.
func TestCountedOnce(t *testing.T) {
	var table state.Table
	put := func(n job.Number) {
		table.Put(n, &state.Job{Number: n, Owner: &state.Owner{User: fmt.Sprint("user", n%2)}, State: job.Finished})
	}
	var e ends
	for n := range job.Number(1000) {
		put(n)
	}
	before := e.of(&state.View{Jobs: table.Snapshot()})
	put(1001)
	table.Put(0, nil)
	after := e.of(&state.View{Jobs: table.Snapshot()})
	if len(before) != 4 || len(after) != 4 || before[0] == after[0] || before[1] != after[1] || before[2] != after[2] || before[3] == after[3] {
		t.Errorf("of the pages %p those are the same that did not change: %p", before, after)
	}
	if before[0].of("") != 256 || after[0].of("user0") != 127 || after[0].of("user1") != 128 || after[3].of("") != 233 || after[0].of("none") != 0 {
		t.Errorf("the first page has %+v, and then %+v", before[0], after[0])
	}
}
