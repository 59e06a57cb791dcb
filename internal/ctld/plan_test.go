package ctld

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/client"
)

// TestPlan proves that the plan has what runs until its limit, the start that is
// promised to what waits, and reservations; and that others are told that something
// runs, and that something is to start, but no name, nor whose start it is.
func TestPlan(t *testing.T) {
	s := newSite(t, nil)
	s.gpuNode("n1", "GPU-a", "GPU-b")
	s.node("n2")
	ann, eve := s.user("ann"), s.user("eve")
	now := time.Now().UTC().Truncate(time.Second)
	if _, err := s.Reserve(t.Context(), api.Reservation{Name: "disks", Start: now.Add(50 * time.Hour), End: now.Add(51 * time.Hour), Nodes: []string{"n2"}, Maintenance: true, Reason: "new disks"}); err != nil {
		t.Fatal(err)
	}
	for _, hours := range []int{2, 3} {
		doc := fmt.Sprintf(`{"name":"train","request":{"resources":{"gpus":2,"cpus":1,"cpuMemoryGb":1},"docker":{"image":"busybox:1","command":"true"},"scheduling":{"maxDuration":"%d hours"}}}`, hours)
		if _, err := ann.Submit(t.Context(), &api.SubmitRequest{Job: []byte(doc)}, ""); err != nil {
			t.Fatal(err)
		}
	}
	var plan *api.Plan
	see := func(c *client.Client) []string {
		var out []string
		p, err := client.Plan(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range p.Nodes {
			for _, x := range n.Spans {
				out = append(out, fmt.Sprintf("%s: %s job %q of %q, %q, %v of %d GPUs, private %t", n.Name, x.Kind, x.Job, x.User, x.Name, x.GPUs, n.GPUs, x.Private))
			}
		}
		plan = p
		return out
	}
	waitFor(t, "the second job has a place in the plan", func() bool { return len(see(ann)) == 3 })
	first, next := plan.Nodes[0].Spans[0], plan.Nodes[0].Spans[1]
	if first.End.Sub(first.Start) != 2*time.Hour || next.Start.Before(first.End) || next.End.Sub(next.Start) != 3*time.Hour || plan.Total != 2 {
		t.Errorf("spans of 2 hours, then of 3: %+v", plan)
	}
	maintenance := `n2: maintenance job "" of "", "disks", 0 of 0 GPUs, private false`
	for who, want := range map[*client.Client][]string{
		ann: {`n1: running job "1" of "ann", "train", 2 of 2 GPUs, private false`, `n1: promised job "2" of "ann", "train", 2 of 2 GPUs, private false`, maintenance},
		eve: {`n1: running job "1" of "ann", "", 2 of 2 GPUs, private true`, `n1: promised job "" of "", "", 2 of 2 GPUs, private true`, maintenance},
	} {
		if got := see(who); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
