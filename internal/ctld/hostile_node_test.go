package ctld

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/control"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/sched"
)

// TestHostileNode: a node with a key of its own says what is not so. What it
// says of itself may be believed; the jobs on another node, their accounts and
// the controller are as before after each.
func TestHostileNode(t *testing.T) {
	s := newSite(t, nil)
	honest := s.node("n1")
	evil := s.joined("n2")
	if _, err := evil.NodeSync(t.Context(), "n2", evil.hello()); err != nil {
		t.Fatal(err)
	}
	on := func(name string) job.RankID {
		req := hello(2)
		req.Job = []byte(strings.Replace(string(req.Job), `"cpus":2`, `"slaveName":"`+name+`","cpus":2`, 1))
		return job.RankID{Job: s.submit(req, "").Number, Attempt: 1}
	}
	good, bad := on("n1"), on("n2")
	honest.sync(nil)
	honest.report(good, node.PhaseRunning, nil)
	rank := func(id job.RankID, text string) string {
		at, _ := json.Marshal(id)
		return `"ranks":[{"id":` + string(at) + `,` + text + `}]`
	}
	other := bad
	other.Attempt, other.Rank = 4294967295, 4294967295
	long := strings.Repeat("\x1b[2J", 20_000)
	long = strings.ReplaceAll(long, "\x1b", `\u001b`)
	tests := []struct {
		name, node, text string
		code             int
	}{
		{"speaks for another", "n1", rank(good, `"phase":"ended","exit":{"code":1}`), 403},
		{"speaks for one that is not there", "n3", ``, 403},
		{"speaks for a path", "..%2Fn1", ``, 403},
		{"ends another node's rank", "n2", rank(good, `"phase":"ended","exit":{"code":1,"reason":"EXIT_CODE"}`), 200},
		{"runs what is not there", "n2", rank(job.RankID{Job: 1 << 62, Attempt: 1}, `"phase":"running"`), 200},
		{"runs another attempt and rank", "n2", rank(other, `"phase":"running"`), 200},
		{"runs a phase that is none", "n2", rank(bad, `"phase":"finished\u0000"`), 200},
		{"has ended without an end", "n2", rank(bad, `"phase":"ended"`), 200},
		{"has the other node's GPU", "n2", `"inventoryHash":"g","inventory":{"hostname":"n1","cluster":1,"cpus":8,"memBytes":34359738368,"gpus":[{"uuid":"GPU-1","model":"x"},{"uuid":"GPU-1","model":"x"}]}`, 200},
		{"has less than nothing", "n2", `"inventoryHash":"i","inventory":{"hostname":"n2","cpus":-1,"memBytes":-1}`, 200},
		{"has more than there is", "n2", `"inventoryHash":"j","inventory":{"hostname":"n2","cpus":9223372036854775807,"memBytes":9223372036854775807}`, 200},
		{"has an amount that wraps", "n2", `"inventoryHash":"k","inventory":{"hostname":"n2","cpus":36893488147419104,"memBytes":1}`, 200},
		{"says infinite things", "n2", rank(bad, `"phase":"running","done":{"percent":-9223372036854775808,"name":"`+long+`"},"progress":"`+long+`","startedMs":1`), 200},
		{"used less than nothing", "n2", fmt.Sprintf(`"use":[{"id":{"job":%d,"attempt":1},"cpuSeconds":-1e308,"memBytes":-1,"gpu":{"utilization":1e308,"samples":9223372036854775807,"energyJ":-1e308}}]`, bad.Job), 200},
		{"used what others run", "n2", fmt.Sprintf(`"use":[{"id":{"job":%d,"attempt":1},"cpuSeconds":1e308,"memBytes":9223372036854775807}]`, good.Job), 200},
		{"measures what it has not", "n2", `"samples":[{"uuid":"GPU-1","utilization":1e308},{"uuid":"","utilization":-1e308}]`, 200},
		{"has pulled ahead what nobody asked", "n2", `"prepulled":[{"job":9223372036854775807,"pullMs":-1},{"job":1,"pullMs":9223372036854775807,"error":"` + long + `"}]`, 200},
		{"is ill in many words", "n2", `"unhealthy":[` + strings.Repeat(`"`+long[:4095]+`",`, 200) + `"x"]`, 200},
		{"is well again, with a clock of its own", "n2", `"nowMs":-9223372036854775808`, 200},
		{"waits for ever", "n2", `"seen":18446744073709551615,"waitMs":-9223372036854775808`, 200},
		{"sends too much", "n2", `"boot":"` + strings.Repeat("x", 3<<20) + `"`, 413},
		{"sends no request", "n2", `"ranks":"all"`, 422},
		{"sends many ranks", "n2", `"ranks":[` + strings.Repeat(`{"id":{"job":1,"attempt":1},"phase":"ended","exit":{"code":1}},`, 20_000) + `{}]`, 200},
		{"ends its own with an account of its own", "n2", rank(bad, `"phase":"ended","exit":{"code":-9223372036854775808,"signal":-1,"reason":"made up","startedMs":1,"endedMs":-1,"cpuSeconds":1e308,"peakMemBytes":-1,"message":"`+long+`"}`), 200},
		{"ends it again", "n2", rank(bad, `"phase":"ended","exit":{"code":0}`), 200},
		{"runs it again", "n2", rank(bad, `"phase":"running"`), 200},
		{"comes back with an empty directory", "n2", `"instance":"another"`, 200},
	}
	caller := column{name: "n2", cert: evil.cert}
	for _, tc := range tests {
		t.Run(strings.ReplaceAll(tc.name, " ", "-"), func(t *testing.T) {
			body := `{"boot":"b"`
			if !strings.Contains(tc.text, `"instance"`) {
				body += `,"instance":"i-n2"`
			}
			if !strings.Contains(tc.text, `"inventoryHash"`) {
				body += `,"inventoryHash":"h"`
			}
			if tc.text != "" {
				body += "," + tc.text
			}
			path := strings.Replace(api.PathNodeSync, "{name}", tc.node, 1)
			if code, text := caller.do(t, s, http.MethodPost, path, body+"}"); code != tc.code {
				t.Errorf("it is answered %d %.300s, want %d", code, text, tc.code)
			}
			s.unharmed(t, honest, good)
			if d, err := s.Job(t.Context(), fmt.Sprint(bad.Job), client.JobOptions{}); err == nil && len(fmt.Sprint(d)) > 64<<10 {
				t.Errorf("its job is shown with %d bytes", len(fmt.Sprint(d)))
			}
		})
	}
	d := s.job(fmt.Sprint(bad.Job))
	if d.State != job.Failed || d.Used == nil || d.Used.CPUTimeS > 1e15 || d.Used.CPUTimeS < 0 || d.Used.ElapsedS > 3600 {
		t.Errorf("the job on the hostile node is %s, with %+v", d.State, d.Used)
	}
	honest.report(good, node.PhaseEnded, &node.Exit{})
	if d := s.job(fmt.Sprint(good.Job)); d.State != job.Finished {
		t.Errorf("the job on the other node is %s", d.State)
	}
}

// unharmed looks at what is not the hostile node's.
func (s *testSite) unharmed(t *testing.T, n *fakeNode, id job.RankID) {
	t.Helper()
	if err := s.server.loop.Ask(t.Context(), func(c *control.Controller, _ sched.Time) {
		if err := c.Check(); err != nil {
			t.Error(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	d := s.job(fmt.Sprint(id.Job))
	if d.State != job.Running || len(d.Attempts) > 1 || d.Used != nil && (d.Used.CPUTimeS != 0 || d.Used.ElapsedS > 3600) {
		t.Errorf("the job on the other node is %s, with %+v", d.State, d.Used)
	}
	n.sync(nil)
	if n.stops[id] != nil || n.runs[id] == nil {
		t.Errorf("the other node is told to stop it: %+v", n.stops[id])
	}
}
