package ctld

import (
	"strings"
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/ctld/site"
)

// TestMoveJobs: a job that waits goes to another project by the rights that its user
// has when it goes, and its document is looked at as if it had been submitted there.
func TestMoveJobs(t *testing.T) {
	s := newSite(t, func(c *site.Config) {
		c.Projects = []site.Project{{Name: "default"}, {Name: "lab", Members: byName("ann")}, {Name: "quiet", Members: byName("zoe")}, {Name: "west", Clusters: []int{2}}}
		c.Operators = byName("ops")
	})
	s.node("n1")
	ann, zoe, ops := s.user("ann"), s.user("zoe"), s.user("ops")
	held, east := hello(1), hello(1)
	held.Hold, held.Project = true, "lab"
	east.Hold, east.Job = true, []byte(strings.Replace(string(east.Job), `"gpus":0`, `"gpus":0,"clusterId":1`, 1))
	for _, r := range []*api.SubmitRequest{held, east} {
		if _, err := ann.Submit(t.Context(), r, ""); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		name    string
		by      *client.Client
		id      string
		change  api.JobChange
		refusal string // part of it; empty: done
	}{
		{"a project that others have", ann, "1", api.JobChange{Project: "quiet"}, "there is no project"},
		{"one that is not there", ann, "1", api.JobChange{Project: "moon"}, "there is no project"},
		{"somebody else's job", zoe, "1", api.JobChange{Project: "quiet"}, "belongs to ann"},
		{"what may not be there", ann, "2", api.JobChange{Project: "west"}, "may use clusters"},
		{"no such class", ann, "1", api.JobChange{QOS: "gold"}, "there is no qos"},
		{"her own project", ann, "1", api.JobChange{Project: "default", Name: "moved"}, ""},
		{"an operator", ops, "1", api.JobChange{Project: "quiet"}, ""},
	} {
		got := ""
		out, err := tc.by.Action(t.Context(), "update", &api.ActionRequest{IDs: []string{tc.id}, Change: &tc.change})
		if err != nil {
			got = err.Error()
		} else if e := out.Results[0].Error; e != nil {
			got = e.Error()
		}
		if tc.refusal == "" && got != "" || !strings.Contains(got, tc.refusal) {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.refusal)
		}
	}
	if d := s.job("1"); d.Project != "quiet" || d.Name != "moved" {
		t.Errorf("job 1 is %+v", d.Job)
	}
	s.stop()
	s.start()
	if d := s.job("1"); d.Project != "quiet" {
		t.Errorf("after a restart job 1 is of project %s", d.Project)
	}
}
