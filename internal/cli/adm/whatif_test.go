package adm

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/cli/clitest"
)

// TestWhatIf: the answer is told by users and jobs, and that it is not whole.
func TestWhatIf(t *testing.T) {
	b := clitest.Start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body bytes.Buffer
		if _, err := body.ReadFrom(r.Body); err != nil || strings.TrimSpace(body.String()) != `{"set":["mode=fcfs"],"addNodes":["1x8xh100"]}` || r.URL.Path != api.PathWhatIf {
			t.Errorf("%s asks %s, %v", r.URL.Path, body.String(), err)
		}
		all := api.WhatIfWaits{Jobs: 3, StartedBefore: 2, StartedAfter: 3, WaitBeforeS: 7200, WaitAfterS: 60, Sooner: 2}
		ann := all
		ann.User = "ann"
		now := clitest.Now
		clitest.Answer(w, api.WhatIf{Now: now, Until: now.Add(time.Hour), All: all, Users: []api.WhatIfWaits{ann}, Jobs: []api.WhatIfJob{{ID: "7_1", Name: "x", User: "ann", After: &now}}})
	}))
	if err := (&WhatIf{Set: []string{"mode=fcfs"}, AddNodes: []string{"1x8xh100"}}).Run(t.Context(), b.App); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(whatIfOut, b.Out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if said := b.Err.String(); !strings.Contains(said, "so far was looked in the time that there is") {
		t.Errorf("said %q", said)
	}
}

const whatIfOut = `USER   WAITING  START  THEN     WAIT  THEN  SOONER  LATER
(all)        3      2     3  2:00:00  1:00       2      0
ann          3      2     3  2:00:00  1:00       2      0

JOB  USER  NAME  STARTS  THEN
7_1  ann   x     later   in 0:00
`
