package control

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// storedRecords are those of a random history of jobs, arrays, gangs,
// dependents and templates, as format 2 of the store has them. They are never
// written anew: what follows must read them.
func storedRecords(t *testing.T) (now sched.Time, records []state.Record) {
	t.Helper()
	text, err := os.ReadFile("stored/records")
	if err != nil {
		t.Fatal(err)
	}
	first, rest, _ := strings.Cut(string(text), "\n")
	if _, err := fmt.Sscan(first, &now); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(rest) {
		var r state.Record
		var kind rune
		line = strings.TrimSuffix(line, "\n")
		if _, err := fmt.Sscanf(line, "%c %d %d %q", &kind, &r.Job, &r.Seq, &r.Name); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		r.Kind = state.Kind(kind)
		head := fmt.Sprintf("%c %d %d %q ", r.Kind, r.Job, r.Seq, r.Name)
		r.Value = []byte(strings.TrimPrefix(line, head))
		records = append(records, r)
	}
	return now, records
}

// TestStored opens stored records, writes each again to the same bytes, and
// compares what can be seen of them with what was seen when they were written.
func TestStored(t *testing.T) {
	now, records := storedRecords(t)
	c, err := New(testConfig(), 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if err := c.Load(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Loaded(now); err != nil {
		t.Fatal(err)
	}
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("stored/view")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), viewText(c.View(now))); diff != "" {
		t.Errorf("the view differs (-when written +now):\n%s", diff)
	}
	for _, r := range records {
		again := r.Value
		switch r.Kind {
		case state.KindJob:
			again = c.jobs.get(r.Job).Encode()
		case state.KindHistory:
			j, err := state.DecodeJob(r.Value)
			if err != nil {
				t.Fatal(err)
			}
			again = j.EncodeHistory()
		case state.KindNode:
			again = state.Encode(c.nodes.get(r.Name))
		case state.KindEnded:
			again = endOf(t, records, r).Value
		}
		if diff := cmp.Diff(string(r.Value), string(again)); diff != "" {
			t.Errorf("%c %d %s is written in other bytes (-then +now):\n%s", r.Kind, r.Job, r.Name, diff)
		}
	}
}

// endOf is the index of ends as it is made from the job's own record.
func endOf(t *testing.T, records []state.Record, end state.Record) state.Record {
	t.Helper()
	for _, r := range records {
		if r.Job == end.Job && (r.Kind == state.KindJob || r.Kind == state.KindHistory) {
			again, over, err := state.IndexEnded(r)
			if err != nil || !over {
				t.Fatalf("job %d: over %t, %v", r.Job, over, err)
			}
			return again
		}
	}
	return end
}

// viewText is what readers see of jobs and nodes.
func viewText(v *state.View) string {
	var b strings.Builder
	for j := range v.All() {
		fmt.Fprintf(&b, "%s %s %s held %v", j.ID(), j.Status(), j.Reason, v.Held(j, v.Now))
		switch {
		case j.Tasks != nil:
			s := v.Summary(j)
			fmt.Fprintf(&b, " tasks %s waiting %s active %d failed %s", j.Tasks.All, s.Waiting, s.Active, j.Tasks.In(state.TaskFailed, state.TaskMissed))
			if !j.State.Final() {
				fmt.Fprintf(&b, " because %q", v.WaitingArray(j, s).Text)
			}
		case j.State == job.Queued:
			fmt.Fprintf(&b, " because %q", v.Waiting(j).Text)
		case j.State.Active():
			for i, r := range j.Attempt.Ranks {
				fmt.Fprintf(&b, " %s on %s %s may begin %t", j.RankID(i), r.Alloc.Node, r.Phase, j.MayBegin(i))
			}
			fmt.Fprintf(&b, " left %d", j.LimitLeft())
		}
		fmt.Fprintf(&b, " %q\n", j.Text)
	}
	for n := range v.Nodes.All() {
		state, why := n.State()
		fmt.Fprintf(&b, "%s %s %q jobs %v gpus %d\n", n.Name, state, why, n.Jobs, len(n.Inventory.GPUs))
		for _, g := range n.Inventory.GPUs {
			fmt.Fprintf(&b, "  %s %s %d %q\n", g.UUID, g.Model, g.MemBytes, n.OutOfService(g))
		}
	}
	for _, w := range v.Windows {
		fmt.Fprintf(&b, "window %s %d-%d %v\n", w.Name, w.Start, w.End, w.GPUs)
	}
	return b.String()
}
