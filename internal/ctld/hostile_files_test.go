package ctld

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/control"
	"gbatch/internal/ctld/site"
	"gbatch/internal/job/importer"
	"gbatch/internal/job/importer/hostiletest"
	"gbatch/sched"
)

// TestHostileFiles submits each hostile job file to a controller, as
// gsubmit would, and past it as it is. The controller takes what the corpus says
// that it takes, and refuses the rest as the caller's mistake. It has no node,
// so that nothing is refused because no node could hold it.
func TestHostileFiles(t *testing.T) {
	s := newSite(t, func(c *site.Config) {
		c.Projects = []site.Project{{Name: "default"}, {Name: "secret", Members: byName("bob")}}
		c.DefaultProject = "default"
		c.InstanceTypes = map[string]site.InstanceType{"small": {CPUs: 1, CPUMemoryGB: 1}, "H100_1x": {GPUs: 1, CPUs: 1, CPUMemoryGB: 1}}
	})
	ann, raw := s.user("ann"), column{token: s.token(api.TokenRequest{Use: api.TokenUser, User: "ann"}).Secret}
	for _, c := range hostiletest.Cases(t) {
		t.Run(c.Name, func(t *testing.T) {
			if sub, err := c.Read(); err == nil {
				doc, err := sub.Document()
				if err != nil {
					t.Fatal(err)
				}
				got := "taken"
				r, err := ann.Submit(t.Context(), &api.SubmitRequest{Job: doc, Hold: true}, "")
				if e := (*api.Error)(nil); errors.As(err, &e) {
					got = refusalText(e)
				} else if err != nil {
					t.Fatal(err)
				} else if _, err := ann.Action(t.Context(), "cancel", &api.ActionRequest{IDs: []string{fmt.Sprint(r.Number)}}); err != nil {
					t.Fatal(err)
				}
				if want := c.Want.Controller; got != want && (want != "" || got != "taken") {
					t.Errorf("%s: the controller says %q, want %q", c.Attack, got, want)
				}
			}
			if format, err := importer.Detect(c.Text); err == nil && format != importer.GPULabV2 || !json.Valid(c.Text) {
				return
			}
			if code, body := raw.do(t, s, http.MethodPost, api.PathJobs, `{"hold":true,"job":`+string(c.Text)+`}`); code >= 500 || c.Want.Refused != "" && code < 400 {
				t.Errorf("as it is, the file gets %d %.300s", code, body)
			}
		})
	}
	if err := s.server.loop.Ask(t.Context(), func(c *control.Controller, _ sched.Time) {
		if err := c.Check(); err != nil {
			t.Error(err)
		}
	}); err != nil {
		t.Error(err)
	}
}

// refusalText is what was said, on a line for each problem.
func refusalText(e *api.Error) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%d %s", e.Status, e.Message)
	for _, p := range e.Problems {
		fmt.Fprintf(&b, "\n%s: %s", p.Path, p.Message)
	}
	return b.String()
}
