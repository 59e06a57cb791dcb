package slurm

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/cli/clitest"
	"gbatch/internal/job"
)

// What Open XDMoD 11 asks sacct for, in this order. It cuts a line at the bars
// into as many fields, so that the last, a job's name, may have bars itself.
var xdmodFields = []string{"jobid", "jobidraw", "cluster", "partition", "qos", "account", "group", "gid", "user", "uid", "submit", "eligible", "start", "end", "elapsed",
	"exitcode", "state", "nnodes", "ncpus", "reqcpus", "reqmem", "reqtres", "alloctres", "timelimit", "nodelist", "jobname"}

// xdmodStates are states that it takes for ended, by their first word. Jobs in states that it
// does not know are left out of its figures.
var xdmodStates = []string{"BOOT_FAIL", "CANCELLED", "COMPLETED", "FAILED", "NODE_FAIL", "PREEMPTED", "TIMEOUT", "OUT_OF_MEMORY", "DEADLINE", "REVOKED"}

// xdmodJob is what it makes of a line.
type xdmodJob struct {
	ID, Raw, Name, Queue, QOS, User, Account, Group, State, Exit, FirstNode string
	Array                                                                   []int // its indexes
	Submit, Eligible, Start, End                                            time.Time
	Elapsed, Limit                                                          time.Duration // Limit 0: none
	Nodes, CPUs, GPUs                                                       int
}

var (
	xdmodTime   = regexp.MustCompile(`^(?:(?:(\d+)-)?(\d+):)?(\d+):(\d+)(?:\.\d+)?$`) // [[days-]hours:]minutes:seconds
	xdmodArray  = regexp.MustCompile(`^(\d+)_(\d+|\[[\d,-]+\])$`)
	xdmodNumber = regexp.MustCompile(`^\d+$`)
)

// readXDMoD reads a line by the rules of XDMoD's reader of Slurm's accounting; ok is false
// where that leaves the line out.
func readXDMoD(t *testing.T, line string) (j xdmodJob, ok bool) {
	t.Helper()
	fields := strings.SplitN(line, "|", len(xdmodFields))
	if len(fields) != len(xdmodFields) {
		t.Fatalf("%d fields, want %d: %s", len(fields), len(xdmodFields), line)
	}
	at := map[string]string{}
	for i, name := range xdmodFields {
		at[name] = fields[i]
	}
	state, _, _ := strings.Cut(at["state"], " ")
	if strings.Contains(at["jobid"], ".") || at["end"] == "Unknown" || at["nodelist"] == "None assigned" || !slices.Contains(xdmodStates, state) {
		return j, false
	}
	moment := func(name string) time.Time {
		m, err := time.Parse("2006-01-02T15:04:05", at[name])
		if err != nil {
			t.Errorf("%s is %q, which is no time to XDMoD", name, at[name])
		}
		return m
	}
	number := func(name string) int {
		if !xdmodNumber.MatchString(at[name]) {
			t.Errorf("%s is %q, want a number", name, at[name])
		}
		n, _ := strconv.Atoi(at[name])
		return n
	}
	j = xdmodJob{ID: at["jobid"], Raw: at["jobidraw"], Name: at["jobname"], Queue: at["partition"], QOS: at["qos"], User: at["user"], Account: at["account"], Group: at["group"],
		State: state, Exit: at["exitcode"], Submit: moment("submit"), Eligible: moment("eligible"), Start: moment("start"), End: moment("end"),
		Elapsed: xdmodSpan(t, at["elapsed"]), Limit: xdmodSpan(t, at["timelimit"]), Nodes: number("nnodes"), CPUs: number("ncpus")}
	number("jobidraw")
	number("uid")
	number("gid")
	number("reqcpus")
	if before, list, array := strings.Cut(j.ID, "_"); array {
		if !xdmodArray.MatchString(j.ID) {
			t.Errorf("jobid %q is no task to XDMoD", j.ID)
		}
		j.ID, j.Array = before, xdmodIndexes(list)
	}
	for _, r := range strings.Split(at["alloctres"], ",") {
		if n, gpu := strings.CutPrefix(r, "gres/gpu="); gpu {
			j.GPUs, _ = strconv.Atoi(n)
		}
	}
	j.FirstNode, _, _ = strings.Cut(at["nodelist"], ",")
	if head, list, ranges := strings.Cut(at["nodelist"], "["); ranges && !strings.Contains(head, ",") {
		j.FirstNode = head + regexp.MustCompile(`^\d+`).FindString(list)
	}
	return j, true
}

// xdmodSpan is 0 for what has no end, and for nothing.
func xdmodSpan(t *testing.T, s string) time.Duration {
	t.Helper()
	if s == "" || strings.EqualFold(s, "UNLIMITED") {
		return 0
	}
	m := xdmodTime.FindStringSubmatch(s)
	if m == nil {
		t.Errorf("%q is no length of time to XDMoD", s)
		return 0
	}
	var n [4]time.Duration
	for i := range n {
		x, _ := strconv.Atoi(m[i+1])
		n[i] = time.Duration(x)
	}
	return n[0]*24*time.Hour + n[1]*time.Hour + n[2]*time.Minute + n[3]*time.Second
}

func xdmodIndexes(list string) (out []int) {
	for _, part := range strings.Split(strings.Trim(list, "[]"), ",") {
		first, last, many := strings.Cut(part, "-")
		if !many {
			last = first
		}
		a, _ := strconv.Atoi(first)
		b, _ := strconv.Atoi(last)
		for ; a <= b; a++ {
			out = append(out, a)
		}
	}
	return out
}

// xdmodSite has a job of each way to end.
func xdmodSite() (site http.Handler, past []api.PastJob) {
	began, task := clitest.Now.Add(-26*time.Hour), 7
	add := func(state job.State, reason job.Reason, edit func(*api.Job)) {
		n := job.Number(100 + len(past))
		j := api.Job{ID: fmt.Sprint(n), Number: n, UUID: fmt.Sprintf("%032d", n), Name: "train", User: "ann", Project: "vision", State: state, Reason: string(reason), Partition: "gpu",
			Submitted: began.Add(-time.Hour), Started: began, Ended: began.Add(25*time.Hour + 2*time.Second), LimitS: 30 * 3600, GPUs: 2, CPUs: 8, MemBytes: 32 << 30, NumNodes: 1, Nodes: []string{"gpu01"}}
		if edit != nil {
			edit(&j)
		}
		past = append(past, api.PastJob{Job: j, Used: &api.Used{ElapsedS: 90002}})
	}
	add(job.Finished, "", nil)
	for _, reason := range []job.Reason{job.ExitCode, job.OOM, job.MaxRuntime, job.NodeFail, job.Prolog, job.ImagePull} {
		add(job.Failed, reason, nil)
	}
	add(job.Halted, "", nil)
	add(job.Cancelled, job.ByUser, nil)
	add(job.Cancelled, job.ByUser, func(j *api.Job) { j.Started, j.Nodes, j.NumNodes = time.Time{}, nil, 0 }) // it never started
	add(job.Failed, job.MaxQueued, func(j *api.Job) { j.Started, j.Nodes, j.NumNodes = time.Time{}, nil, 0 })
	add(job.Finished, "", func(j *api.Job) { j.Name, j.LimitS = "a|b|c", 0 })
	add(job.Finished, "", func(j *api.Job) { j.Nodes, j.NumNodes, j.GPUs = []string{"gpu02", "gpu03", "gpu07"}, 3, 6 })
	add(job.Finished, "", func(j *api.Job) { j.ID, j.Parent, j.Task = "99_7", 99, &task })
	add(job.Running, "", func(j *api.Job) { j.Ended = time.Time{} })
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+api.PathHistory, func(w http.ResponseWriter, _ *http.Request) { clitest.Answer(w, api.History{Jobs: past}) })
	mux.Handle("/", controller())
	return mux, past
}

// TestXDMoD: XDMoD's reader understands every line that its own command line gives, takes
// all jobs that ended after they had nodes, each with what it had, and no others.
func TestXDMoD(t *testing.T) {
	t.Setenv("TZ", "UTC")
	site, past := xdmodSite()
	b := clitest.Start(t, site)
	args := []string{"--clusters", "gbatch", "--allusers", "--parsable2", "--noheader", "--allocations", "--duplicates", "--format", strings.Join(xdmodFields, ","),
		"--starttime", "2020-01-01T00:00:00", "--endtime", "2030-01-01T00:00:00", "--state", "CANCELLED,COMPLETED,FAILED,NODE_FAIL,PREEMPTED,TIMEOUT,OUT_OF_MEMORY"}
	if err := sacct(context.Background(), b.App, args); err != nil {
		t.Fatal(err)
	}
	got := map[string]xdmodJob{}
	for line := range strings.Lines(b.Out.String()) {
		if j, ok := readXDMoD(t, strings.TrimSuffix(line, "\n")); ok {
			got[j.Raw] = j
		}
	}
	want := map[string]xdmodJob{}
	states := []string{"COMPLETED", "FAILED", "OUT_OF_MEMORY", "TIMEOUT", "NODE_FAIL", "FAILED", "FAILED", "PREEMPTED", "CANCELLED", "", "", "COMPLETED", "COMPLETED", "COMPLETED", ""}
	for i, p := range past {
		if states[i] == "" {
			continue
		}
		raw := fmt.Sprint(p.Number)
		j := xdmodJob{ID: p.ID, Raw: raw, Name: p.Name, Queue: "gpu", QOS: "normal", User: "ann", Account: "vision", Group: got[raw].Group, State: states[i], Exit: got[raw].Exit, FirstNode: p.Nodes[0],
			Submit: p.Submitted.UTC(), Eligible: p.Submitted.UTC(), Start: p.Started.UTC(), End: p.Ended.UTC(), Elapsed: 25*time.Hour + 2*time.Second, Limit: time.Duration(p.LimitS) * time.Second,
			Nodes: p.NumNodes, CPUs: p.CPUs, GPUs: int(p.GPUs)}
		if p.Task != nil {
			j.ID, j.Array = fmt.Sprint(p.Parent), []int{*p.Task}
		}
		want[raw] = j
	}
	delete(got, "9") // of clitest's own
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what XDMoD reads (-want +got):\n%s", diff)
	}
}
