package ctld

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/job"
)

// TestListWhereItIs: a job is found in the cluster where it is, which it need not
// have asked for; those that wait come with their priorities, if asked for.
func TestListWhereItIs(t *testing.T) {
	s := newSite(t, nil)
	n := s.node("n1") // 8 cores of cluster 1
	for _, cpus := range []int{8, 4} {
		if _, err := s.Submit(t.Context(), hello(cpus), ""); err != nil {
			t.Fatal(err)
		}
	}
	n.sync(nil)
	found := func(f client.JobFilter) (numbers []job.Number) {
		t.Helper()
		l, err := s.Jobs(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range l.Jobs {
			numbers = append(numbers, j.Number)
			if want := f.Factors && j.State == job.Queued; (j.Factors != nil) != want {
				t.Errorf("job %d is %s and has the factors %v", j.Number, j.State, j.Factors)
			}
		}
		return numbers
	}
	if got := found(client.JobFilter{Cluster: 1}); len(got) != 1 || got[0] != 1 {
		t.Errorf("in cluster 1 are %v", got)
	}
	if got := found(client.JobFilter{Cluster: 2}); len(got) != 0 {
		t.Errorf("in cluster 2 are %v", got)
	}
	if got := found(client.JobFilter{Factors: true}); len(got) != 2 {
		t.Errorf("there are %v", got)
	}
	if got := found(client.JobFilter{QOS: "none"}); len(got) != 0 {
		t.Errorf("of QOS none are %v", got)
	}
	r, err := s.Action(t.Context(), "cancel", &api.ActionRequest{Cluster: 1})
	if err != nil || len(r.Results) != 1 || r.Results[0].Number != 1 {
		t.Errorf("a cancel of cluster 1: %+v, %v", r, err)
	}
}

// TestListInPages: a list is read in pages and searched by words; tasks are folded
// below their array or read by it; others' names are not found.
func TestListInPages(t *testing.T) {
	s := newSite(t, nil)
	n := s.node("n1")
	s.submit(array(`{"tasks":"0-9%2"}`), "") // 1, its tasks 2 and 3
	n.sync(nil)
	for _, user := range []string{"ann", "bob"} {
		if _, err := s.user(user).Submit(t.Context(), hello(8), ""); err != nil { // 4 and 5
			t.Fatal(err)
		}
	}
	s.submit(hello(1), "") // 6
	if _, err := s.Action(t.Context(), "cancel", &api.ActionRequest{IDs: []string{"4", "6"}}); err != nil {
		t.Fatal(err)
	}
	plain := s.plain()
	tests := map[string]struct{ query, want string }{
		"all":          {"", "1_0 1_1 1 5 of 4"},
		"a page":       {"offset=1&limit=2", "1_1 1 of 4"},
		"past the end": {"offset=9", "of 4"},
		"folded":       {"fold=true", "1+2 5 of 2"},
		"of an array":  {"array=1&fold=true", "1_0 1_1 of 2"},
		"ended last":   {"all=true&fold=true", "1+2 5 4 6 of 4"},
		"newest":       {"all=true&fold=true&newest=true", "1+2 5 6 4 of 4"},
		"of a user":    {"user=ann&all=true", "4 of 1"},
		"words":        {"text=HELLO+queued", "1 5 of 2"},
		"a node":       {"text=n1", "1_0 1_1 of 2"},
		"no such word": {"text=hello+nowhere", "of 0"},
		"a little old": {"maxAge=60&fold=true", "1+2 5 of 2"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var list api.JobList
			getJSON(t, plain+api.PathJobs+"?"+tc.query, &list)
			var got []string
			for _, j := range list.Jobs {
				id := j.ID
				if j.Tasks != nil && j.Tasks.NumBelow > 0 {
					id += fmt.Sprintf("+%d", j.Tasks.NumBelow)
				}
				got = append(got, id)
			}
			if text := strings.TrimSpace(fmt.Sprintf("%s of %d", strings.Join(got, " "), list.Total)); text != tc.want {
				t.Errorf("got %s, want %s", text, tc.want)
			}
		})
	}
}

// TestNodesInPages: nodes are read in pages too, the worst first, with counts of all
// that are asked for.
func TestNodesInPages(t *testing.T) {
	s := newSite(t, nil)
	for _, name := range []string{"n1", "n2", "n3"} {
		s.gpuNode(name, "GPU-"+name+"-0", "GPU-"+name+"-1")
	}
	if _, err := s.Drain(t.Context(), "n2", api.DrainRequest{Reason: "new Disk"}); err != nil {
		t.Fatal(err)
	}
	plain := s.plain()
	tests := map[string]struct{ query, want string }{
		"all":         {"", "n1 n2 n3 of 3, 4 of 6 GPUs free"},
		"worst first": {"worst=true&limit=2", "n2 n1 of 3, 4 of 6 GPUs free"},
		"the rest":    {"worst=true&offset=2&limit=2", "n3 of 3, 4 of 6 GPUs free"},
		"words":       {"text=disk+DRAINED&maxAge=5", "n2 of 1, 0 of 2 GPUs free"},
		"a model":     {"model=none", " of 0, 0 of 0 GPUs free"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var info api.ClusterInfo
			getJSON(t, plain+api.PathCluster+"?"+tc.query, &info)
			var names []string
			for _, n := range info.Nodes {
				names = append(names, n.Name)
			}
			got := fmt.Sprintf("%s of %d, %d of %d GPUs free", strings.Join(names, " "), info.Total, info.NumFreeGPUs, info.NumGPUs)
			if got != tc.want || len(info.Models) != 1 {
				t.Errorf("got %s and models %q, want %s", got, info.Models, tc.want)
			}
		})
	}
}

func getJSON(t *testing.T, address string, into any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", address, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(into); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v", address, answer.Status, err)
	}
}
