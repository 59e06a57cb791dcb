package ctld

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/ctld/site"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
)

// as is a client of a user; root has the site's own.
func (s *testSite) as(user string) *client.Client {
	if user == "root" {
		return s.Client
	}
	return s.user(user)
}

// accountingSite has jobs of ann and bob, in projects of their own, that have
// run and ended.
func accountingSite(t *testing.T) *testSite {
	s := newSite(t, func(c *site.Config) {
		c.DefaultProject, c.Projects = "", []site.Project{
			{Name: "vision", Members: byName("ann"), Budget: 600, BudgetPeriod: api.BudgetMonth},
			{Name: "secret", Members: byName("bob"), Parent: "vision"},
			{Name: "open"},
		}
	})
	n := s.node("n1")
	for i, who := range []string{"ann/vision", "bob/secret", "ann/vision"} {
		req := hello(1)
		req.Project = who[4:]
		r, err := s.user(who[:3]).Submit(t.Context(), req, "")
		if err != nil {
			t.Fatal(err)
		}
		now := time.Now().UnixMilli()
		exit := &node.Exit{StartedMS: now, EndedMS: now, PeakMem: int64(i+1) << 20, CPUSeconds: 2,
			GPU: &node.GPUUse{Utilization: 50, MaxUtilization: 90, Samples: 3, Simulated: true}}
		if i == 1 {
			exit.Code, exit.Reason = 3, job.ExitCode
		}
		s.end(n, r.Number, exit)
	}
	return s
}

// end lets a node run a job and say how it ended.
func (s *testSite) end(n *fakeNode, num job.Number, exit *node.Exit) {
	s.t.Helper()
	waitFor(s.t, fmt.Sprintf("job %d is assigned", num), func() bool {
		n.sync(nil)
		for id := range n.runs {
			if id.Job == num {
				n.report(id, node.PhaseEnded, exit)
				return true
			}
		}
		return false
	})
}

func numbers(h *api.History) (out []job.Number) {
	for _, j := range h.Jobs {
		out = append(out, j.Number)
	}
	return out
}

func TestHistory(t *testing.T) {
	s := accountingSite(t)
	for name, tc := range map[string]struct {
		who  string
		f    client.HistoryFilter
		want []job.Number
	}{
		"all":           {"root", client.HistoryFilter{}, []job.Number{1, 2, 3}},
		"newest":        {"root", client.HistoryFilter{Newest: true, Limit: 2}, []job.Number{3, 2}},
		"user":          {"root", client.HistoryFilter{Users: []string{"ann"}}, []job.Number{1, 3}},
		"two users":     {"root", client.HistoryFilter{Users: []string{"ann", "bob"}}, []job.Number{1, 2, 3}},
		"project":       {"root", client.HistoryFilter{Projects: []string{"secret"}}, []job.Number{2}},
		"state":         {"root", client.HistoryFilter{States: []string{"FAILED"}}, []job.Number{2}},
		"reason":        {"root", client.HistoryFilter{Reasons: []string{string(job.ExitCode)}}, []job.Number{2}},
		"before":        {"root", client.HistoryFilter{End: time.Now().Add(-time.Hour)}, nil},
		"since":         {"root", client.HistoryFilter{Start: time.Now().Add(-time.Hour)}, []job.Number{1, 2, 3}},
		"name":          {"root", client.HistoryFilter{Names: []string{"hello"}}, []job.Number{1, 2, 3}},
		"others' names": {"ann", client.HistoryFilter{Names: []string{"hello"}}, []job.Number{1, 3}},
		"others are":    {"ann", client.HistoryFilter{}, []job.Number{1, 2, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := s.as(tc.who).History(t.Context(), tc.f)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, numbers(h)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	h, err := s.user("ann").History(t.Context(), client.HistoryFilter{})
	if err != nil {
		t.Fatal(err)
	}
	if j := h.Jobs[1]; !j.Private || j.Name == "hello" || j.Used != nil || j.ExitCode != nil || j.ReasonText != "" {
		t.Errorf("a job of another project shows %+v", j)
	}
	if u := h.Jobs[2].Used; u == nil || u.PeakMem != 3<<20 || u.CPUTimeS != 2 || u.GPU == nil || u.GPU.Utilization != 50 || !u.GPU.Simulated {
		t.Errorf("a job of one's own has used %+v", u)
	}
	if _, err := s.user("ann").History(t.Context(), client.HistoryFilter{Attempts: true}); err == nil {
		t.Error("a user gets all that is recorded")
	}
	if h, err = s.History(t.Context(), client.HistoryFilter{Attempts: true}); err != nil || len(h.Jobs[0].Attempts) != 1 {
		t.Errorf("an operator gets %+v, %v", h, err)
	}
	for _, bad := range []client.HistoryFilter{{States: []string{"RUNNING"}}, {After: "x"}} {
		if _, err := s.History(t.Context(), bad); err == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}

// TestHistoryPages reads page by page, forward and backward, over jobs in
// memory and jobs that have left it.
func TestHistoryPages(t *testing.T) {
	s := accountingSite(t)
	s.stop()
	s.cfg.Keep.Count = 1
	s.start()
	for _, newest := range []bool{false, true} {
		want := []job.Number{1, 2, 3}
		if newest {
			want = []job.Number{3, 2, 1}
		}
		var got []job.Number
		for f := (client.HistoryFilter{Limit: 1, Newest: newest}); ; {
			h, err := s.History(t.Context(), f)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, numbers(h)...)
			if f.After = h.Next; h.Next == "" {
				break
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("newest %t (-want +got):\n%s", newest, diff)
		}
	}
}

func TestUsage(t *testing.T) {
	s := accountingSite(t)
	rows := func(c *client.Client, by ...string) (out []string) {
		r, err := c.Usage(t.Context(), client.UsageFilter{By: by})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range r.Rows {
			out = append(out, fmt.Sprintf("%s %s %s %d ended=%v starts=%d", row.Project, row.User, row.Model, row.Cluster, row.Ended, row.Starts))
		}
		return out
	}
	all := []string{"secret bob none 1 ended=map[FAILED:1] starts=1", "vision ann none 1 ended=map[FINISHED:2] starts=2"}
	for who, want := range map[string][]string{"root": all, "ann": all[1:], "bob": all[:1], "eve": nil} {
		if diff := cmp.Diff(want, rows(s.as(who), "project", "user", "model", "cluster")); diff != "" {
			t.Errorf("usage for %s (-want +got):\n%s", who, diff)
		}
	}
	if _, err := s.Usage(t.Context(), client.UsageFilter{By: []string{"colour"}}); err == nil {
		t.Error("usage by colour")
	}
	before := rows(s.Client, "project")
	s.stop()
	s.start()
	if diff := cmp.Diff(before, rows(s.Client, "project")); diff != "" {
		t.Errorf("after a restart (-before +after):\n%s", diff)
	}
}

// TestShares: users see what is about them and their projects, and what stands
// above those.
func TestShares(t *testing.T) {
	s := accountingSite(t)
	for who, want := range map[string][]string{
		"root": {"0 open ", "0 vision  10 hours a month", "1 vision ann", "1 secret ", "2 secret bob"},
		"ann":  {"0 open ", "0 vision  10 hours a month", "1 vision ann"},
		"bob":  {"0 open ", "0 vision  10 hours a month", "1 secret ", "2 secret bob"},
	} {
		l, err := s.as(who).Shares(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, x := range l.Shares {
			text := fmt.Sprintf("%d %s %s", x.Depth, x.Project, x.User)
			if x.Budget != nil && x.Budget.Monthly {
				text += fmt.Sprintf(" %v hours a month", x.Budget.Hours)
			}
			got = append(got, text)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("shares for %s (-want +got):\n%s", who, diff)
		}
	}
}

// TestUsageOfADayThatIsOver reads days from the store.
func TestUsageOfADayThatIsOver(t *testing.T) {
	s := newSite(t, func(c *site.Config) { c.DefaultProject, c.Projects = "", []site.Project{{Name: "vision"}} })
	day := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -3)
	n := day.Unix() / 86400
	value := fmt.Sprintf(`{"day":%d,"project":"vision","user":"ann","slices":[{"model":"H100","cluster":2,`+
		`"used":{"milliGpu":7200000000,"billed":3600000000},"starts":1,"waitMs":5000}]}`, n)
	s.stop()
	garble(t, s.cfg.Dir, state.Record{Kind: state.KindDay, Seq: uint64(n), Name: "vision/ann", Value: []byte(value)})
	s.start()
	r, err := s.Usage(t.Context(), client.UsageFilter{By: []string{"month", "model"}})
	if err != nil {
		t.Fatal(err)
	}
	want := []api.UsageRow{{Month: day.Format("2006-01"), Model: "H100", BilledHours: 1, GPUSeconds: 7200, Starts: 1, WaitSeconds: 5}}
	if diff := cmp.Diff(want, r.Rows); diff != "" || r.Total.BilledHours != 1 {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r, err = s.Usage(t.Context(), client.UsageFilter{By: []string{"user"}, Start: day.AddDate(0, 0, 1)}); err != nil || len(r.Rows) != 0 {
		t.Errorf("days after it: %+v, %v", r, err)
	}
}

// TestBudgetNote: who submits to a project whose budget is nearly used is told.
func TestBudgetNote(t *testing.T) {
	s := newSite(t, func(c *site.Config) {
		c.DefaultProject, c.Projects = "", []site.Project{{Name: "vision", Budget: 100, BudgetPeriod: api.BudgetMonth}}
	})
	s.node("n1")
	for _, tc := range []struct {
		minutes int64
		want    string
	}{
		{79, ""},
		{80, "project vision has used 80 % of its month's budget: 1.3 of 1.7 GPU-hours"},
		{120, "project vision has used 120 % of its month's budget: 2.0 of 1.7 GPU-hours; its jobs wait in the queue until there is more"},
	} {
		row := fmt.Sprintf(`{"project":"vision","user":"ann","asOf":%d,"monthBilled":%d}`, time.Now().UnixMilli(), tc.minutes*60_000_000)
		s.stop()
		garble(t, s.cfg.Dir, state.Record{Kind: state.KindUsage, Name: "vision/ann", Value: []byte(row)})
		s.start()
		req := hello(1)
		req.Project, req.DryRun = "vision", true
		r, err := s.user("ann").Submit(t.Context(), req, "")
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, n := range r.Notes {
			got += n.Message
		}
		if got != tc.want {
			t.Errorf("%d minutes: %q, want %q", tc.minutes, got, tc.want)
		}
	}
}
