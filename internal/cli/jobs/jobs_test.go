package jobs_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/cli/clitest"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/jobs"
	"gbatch/internal/cli/table"
	"gbatch/internal/job"
)

func TestMain(m *testing.M) { clitest.Main(m) }

func TestFormat(t *testing.T) {
	j := clitest.SampleJobs()[0].Job
	failed := clitest.SampleJobs()[4].Job
	tests := map[string]struct {
		job  api.Job
		want string // with header
		err  string
	}{
		"%i|%j|%T":            {job: j, want: "ID|NAME|STATE\n12|train|RUNNING\n"},
		"%.5i %5j %3T|":       {job: j, want: "   ID NAME  STA|\n   12 train RUN|\n"},
		"%%%i%%":              {job: j, want: "%ID%\n%12%\n"},
		"%t %u %a %P %q %K":   {job: j, want: "ST USER PROJECT CLUSTER QOS INDEX\nR ann vision 1 normal N/A\n"},
		"%M %l %L":            {job: j, want: "TIME LIMIT LEFT\n1:30:00 4:00:00 2:30:00\n"},
		"%D %C %m %b":         {job: j, want: "NODES CPUS MEM GPUS\n4 8 32G 2\n"},
		"%R %N %r":            {job: j, want: "NODES/REASON NODELIST REASON\ngpu[01-03,07] gpu[01-03,07] -\n"},
		"%R;%N;%r":            {job: failed, want: "NODES/REASON;NODELIST;REASON\n(OOM);gpu01;OOM\n"},
		"%S %e":               {job: j, want: "START END\n2026-03-01T07:30:00 2026-03-01T11:30:00\n"},
		"%V %p %Q %A":         {job: j, want: "SUBMITTED PRIORITY PRIORITY JOBID\n2026-03-01T07:00:00 5000 5000 12\n"},
		"%L %e":               {job: failed, want: "LEFT END\n- 2026-03-01T08:00:00\n"},
		"%U":                  {job: j, want: "UUID\na280f7e8-b1e6-41e9-93a1-000000000012\n"},
		"%x":                  {err: `no column has the letter "x"; there are i id`},
		"%i %":                {err: "ends after a percent sign"},
		"%.i%":                {err: "ends after a percent sign"},
		"%0i":                 {err: "a width is between 1 and 1000, not 0"},
		"%99999999999999999i": {err: "a width is between"},
		"%.%":                 {err: `no column has the letter "%"`},
	}
	for format, tc := range tests {
		form, err := jobs.Columns.Format(format)
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) || exit.Code(err) != exit.Usage {
				t.Errorf("%s: error %v, want %q", format, err, tc.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", format, err)
			continue
		}
		var b strings.Builder
		if err := form.Write(&b, []api.Job{tc.job}, table.View{Now: clitest.Now}); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(tc.want, b.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", format, diff)
		}
	}
}

func FuzzParseFormat(f *testing.F) {
	f.Add("%.18i %j%%")
	f.Fuzz(func(t *testing.T, format string) {
		form, err := jobs.Columns.Format(format)
		if err != nil {
			return
		}
		var b strings.Builder
		if err := form.Write(&b, []api.Job{{Name: "x"}}, table.View{Now: clitest.Now}); err != nil {
			t.Error(err)
		}
	})
}

func TestColumnsAreUnique(t *testing.T) {
	seen := map[byte]bool{}
	for _, c := range jobs.Columns {
		for _, l := range []byte(c.Letters) {
			if seen[l] {
				t.Errorf("letter %c twice", l)
			}
			seen[l] = true
		}
	}
	for _, l := range []byte("ijuatTMlDRCmbSeVNpQqKP") {
		if !seen[l] {
			t.Errorf("no column %c", l)
		}
	}
}

// TestCompleting: a job that is being ended says so in each list, for how long, and
// is found by that.
func TestCompleting(t *testing.T) {
	j := api.Job{State: job.Running, Nodes: []string{"n1"}, Started: clitest.Now.Add(-time.Hour), Ending: &api.Ending{Since: clitest.Now.Add(-12 * time.Second), Then: job.Cancelled}}
	form, err := jobs.Columns.Format("%t %T %R")
	if err != nil {
		t.Fatal(err)
	}
	for as, want := range map[string]string{
		"": "CG COMPLETING n1 (ending for 0:12)", "slurm": "CG COMPLETING n1 (ending for 0:12)", "dstack": "CG terminating n1 (ending for 0:12)", "nvct": "CG RUNNING n1 (ending for 0:12)",
	} {
		var b strings.Builder
		if err := form.Write(&b, []api.Job{j}, table.View{Now: clitest.Now, As: as, NoHeader: true}); err != nil {
			t.Error(err)
		}
		if got := strings.Join(strings.Fields(b.String()), " "); got != want {
			t.Errorf("as %q: %q, want %q", as, got, want)
		}
	}
	j.State = job.Halting
	if got := jobs.StateAs("", &j); got != "HALTING" {
		t.Errorf("one that is halted is %s", got)
	}
	for word, want := range map[string]bool{"CG": true, "completing": true, "running": true, "R": true, "PD": false} {
		states, err := jobs.ParseStates([]string{word})
		if j.State = job.Running; err != nil || jobs.InStates(states, &j) != want {
			t.Errorf("-t %s: %t, %v; want %t", word, !want, err, want)
		}
	}
}

// TestPaused: a job that stands still is not to look as one that works.
func TestPaused(t *testing.T) {
	form, err := jobs.Columns.Format("%T %R")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	j := api.Job{State: job.Running, Nodes: []string{"n1"}, Reason: "Paused", Started: clitest.Now}
	if err := form.Write(&b, []api.Job{j}, table.View{Now: clitest.Now, NoHeader: true}); err != nil || strings.Join(strings.Fields(b.String()), " ") != "RUNNING n1 (paused)" {
		t.Errorf("%q, %v", b.String(), err)
	}
}

// TestForeignStates is the table of every state in the words of each system.
func TestForeignStates(t *testing.T) {
	want := map[string]string{
		"":        "ONHOLD QUEUED ASSIGNED STARTING RUNNING MUSTHALT HALTING HALTED FINISHED FAILED CANCELLED DELETED",
		"gpulab1": "ONHOLD QUEUED ASSIGNED STARTING RUNNING RUNNING RUNNING FINISHED FINISHED FAILED CANCELLED DELETED",
		"nvct":    "QUEUED QUEUED LAUNCHED LAUNCHED RUNNING RUNNING RUNNING QUEUED COMPLETED ERRORED CANCELED DELETED",
		"dstack":  "submitted submitted provisioning pulling running terminating terminating submitted done failed terminated deleted",
		"k8s":     "Suspended Pending Pending Pulling Running Running Running Replaced Complete Failed Deleted Deleted",
		"tao":     "Pending Pending Pending Pending Running Running Running Pending Complete Error Canceled Terminated",
		"slurm":   "PENDING PENDING CONFIGURING CONFIGURING RUNNING COMPLETING COMPLETING PREEMPTED COMPLETED FAILED CANCELLED DELETED",
	}
	for as, words := range want {
		var got []string
		for _, s := range job.States {
			got = append(got, jobs.StateAs(as, &api.Job{State: s}))
		}
		if strings.Join(got, " ") != words {
			t.Errorf("as %q\ngot  %s\nwant %s", as, strings.Join(got, " "), words)
		}
	}
	failures := map[[2]string]string{
		{"nvct", "MAX_RUNTIME"}: "EXCEEDED_MAX_RUNTIME_DURATION", {"nvct", "NOT_AFTER"}: "EXCEEDED_MAX_QUEUED_DURATION", {"nvct", "OOM"}: "ERRORED",
		{"dstack", "UTILIZATION"}: "terminated", {"dstack", "EXIT_CODE"}: "failed", {"k8s", "MAX_QUEUED"}: "Failed(DeadlineExceeded)",
		{"slurm", "OOM"}: "OUT_OF_MEMORY", {"slurm", "MAX_RUNTIME"}: "TIMEOUT", {"tao", "OOM"}: "Error", {"gpulab1", "OOM"}: "FAILED",
	}
	for k, word := range failures {
		if got := jobs.StateAs(k[0], &api.Job{State: job.Failed, Reason: k[1]}); got != word {
			t.Errorf("FAILED %s as %s is %s, want %s", k[1], k[0], got, word)
		}
	}
	if err := jobs.CheckSystem("pbs"); err == nil || !strings.Contains(err.Error(), "dstack, gpulab1, k8s, nvct, slurm, tao") {
		t.Errorf("an unknown system: %v", err)
	}
}

// TestEstimate: a start is told once, as exactly as the controller says it.
func TestEstimate(t *testing.T) {
	at := clitest.Now.Add(119 * time.Minute)
	for want, e := range map[string]api.Estimate{
		"it would start at once on gpu1":                 {Now: true, Nodes: []string{"gpu1"}, Text: "starts now"},
		"it would start in about 119 min on gpu1":        {At: at, Nodes: []string{"gpu1"}, Text: "starts in about 119 min"},
		"it would start in 119 min at the earliest":      {At: at, Text: "starts in 119 min at the earliest"},
		"never starts as it is":                          {Text: "never starts as it is"},
		"it would start in 2h on gpu1: when job 12 ends": {At: at, Nodes: []string{"gpu1"}, Text: "when job 12 ends"},
		"when it would start is not known":               {},
	} {
		if got := jobs.Estimate(table.View{Now: clitest.Now, Relative: true}, &e); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := jobs.Estimate(table.View{Now: clitest.Now}, &api.Estimate{At: at, Text: "starts in about 119 min"}); got != "it would start 2026-03-01T10:59:00" {
		t.Errorf("with --iso: %q", got)
	}
}
