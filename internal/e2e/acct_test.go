package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/job"
)

// TestAccounting runs jobs on simulated GPUs and compares what gacct says with
// what ran: ends, use, bills and their sums, live and after a restart.
func TestAccounting(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newSite(t, siteOptions{nodeConfig: "gpu: {simulate: \"h100:4\"}\n"})
	busy := s.submit(doc{name: "busy", gpus: 1, gb: 2, command: sh("trap 'exit 0' TERM; dd if=/dev/zero of=/dev/null bs=1M count=20000; while :; do sleep 0.1; done")})
	fails := s.submit(doc{name: "fails", cpus: 2, command: sh("exit 3")})
	tasks := strings.TrimSpace(s.must("gsubmit", "-a", "0-1", s.write(doc{name: "tasks", command: []string{"true"}}.json())))
	s.waitRunning(busy)
	eventually(t, "the node has sampled the GPU of the job that runs", func() bool {
		u := s.job(busy).Used
		return u.GPU != nil && u.GPU.Samples >= 2 && u.CPUTimeS > 0 && u.PeakMem > 0
	})
	eff := s.must("gacct", "eff", busy)
	for _, want := range []string{"RUNNING", "CPU time", "GPU, mean", "simulated", "Time limit"} {
		if !strings.Contains(eff, want) {
			t.Errorf("gacct eff of a job that runs lacks %q:\n%s", want, eff)
		}
	}
	s.must("gcancel", busy)
	for _, id := range []string{busy, fails, tasks} {
		s.wait(id)
	}

	got := strings.Split(strings.TrimSpace(s.must("gacct", "-n", "--csv", "-o", "id,name,state,exit")), "\n")
	slices.Sort(got)
	want := []string{busy + ",busy,CANCELLED,0", fails + ",fails,FAILED,3", tasks + ",tasks,FINISHED,", tasks + "_0,tasks,FINISHED,0", tasks + "_1,tasks,FINISHED,0"}
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what has ended (-want +got):\n%s", diff)
	}
	if out := s.must("gacct", "--ids", "-s", "FAILED"); out != fails+"\n" {
		t.Errorf("what failed: %q", out)
	}
	if out := s.must("gacct", "-n", "-o", "id,state", tasks+"_1"); strings.Join(strings.Fields(out), " ") != tasks+"_1 FINISHED" {
		t.Errorf("one task: %q", out)
	}
	if out := s.must("gacct", "--ids", tasks); strings.Count(out, "\n") != 3 {
		t.Errorf("an array with its two tasks: %q", out)
	}
	s.checkBills(busy)

	before := s.must("gacct", "usage", "--by", "project,user,model,cluster", "-n", "--csv")
	s.ctld.kill()
	s.ctld.start()
	eventually(t, "the controller answers again", func() bool { return s.run("gacct", "--ids").code == 0 })
	if diff := cmp.Diff(before, s.must("gacct", "usage", "--by", "project,user,model,cluster", "-n", "--csv")); diff != "" {
		t.Errorf("usage after a restart (-before +after):\n%s", diff)
	}
	if n := strings.Count(s.must("gacct", "export"), "\n"); n != len(want) {
		t.Errorf("export has %d lines, want %d", n, len(want))
	}
	if out := s.must("gacct", "shares"); !strings.Contains(out, "root") {
		t.Errorf("shares lack the user:\n%s", out)
	}
}

// checkBills compares a job's bill with what its try held, and the report of
// usage with the sum of all jobs' bills.
func (s *site) checkBills(id string) {
	s.t.Helper()
	d := s.job(id)
	at := d.Attempts[0]
	held := at.End.Sub(at.Start).Seconds()
	near := func(a, b float64) bool { return math.Abs(a-b) < 0.002+b/1000 }
	if u := d.Used; !near(u.GPUSeconds, held) || !near(u.CPUSeconds, held) || !near(u.BilledHours*3600, held) || !near(u.MemGiBSeconds, 2*held) {
		s.t.Errorf("job %s held its GPU for %.3f s and has %+v", id, held, u)
	}
	if g := at.Ranks[0].Exit.GPU; g == nil || !g.Simulated || g.Samples < 2 || g.EnergyJ <= 0 {
		s.t.Errorf("what its GPU did: %+v", g)
	}
	h, err := s.api.History(s.t.Context(), client.HistoryFilter{})
	if err != nil {
		s.t.Fatal(err)
	}
	var billed, gpus float64
	for _, j := range h.Jobs {
		if u := j.Used; u != nil { // an array has no bill of its own
			billed, gpus = billed+u.BilledHours, gpus+u.GPUSeconds
		}
	}
	var r api.UsageReport
	if err := json.Unmarshal([]byte(s.must("gacct", "usage", "--json")), &r); err != nil {
		s.t.Fatal(err)
	}
	if !near(r.Total.BilledHours*3600, billed*3600) || !near(r.Total.GPUSeconds, gpus) {
		s.t.Errorf("usage is %+v, the jobs have %f billed hours and %f GPU seconds", r.Total, billed, gpus)
	}
	ended := map[string]int64{string(job.Cancelled): 1, string(job.Failed): 1, string(job.Finished): 2}
	if diff := cmp.Diff(ended, r.Total.Ended); diff != "" || r.Total.Starts != 4 {
		s.t.Errorf("ends, and %d starts (-want +got):\n%s", r.Total.Starts, diff)
	}
	if len(r.Rows) != 1 || fmt.Sprint(r.By) != "[project]" {
		s.t.Errorf("the report is %+v", r)
	}
}
