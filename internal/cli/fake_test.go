package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/job"
	"gbatch/internal/node"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// now is the clock of all tests.
var now = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

func TestMain(m *testing.M) {
	time.Local = time.UTC
	for _, k := range []string{"GBATCH_CONTROLLER", "GBATCH_TOKEN", "GBATCH_TOKEN_FILE", "GBATCH_CA"} {
		os.Unsetenv(k)
	}
	dir, err := os.MkdirTemp("", "gbatch-cli")
	if err != nil {
		panic(err)
	}
	os.Setenv("XDG_CONFIG_HOME", dir)
	os.Setenv("XDG_STATE_HOME", dir)
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// fake is a controller that answers from what a test gives it. The mutex
// guards all fields.
type fake struct {
	mu      sync.Mutex
	jobs    []api.JobDetail
	nodes   []api.Node
	why     map[string]*api.Explanation
	submit  func(*api.SubmitRequest, string) (*api.SubmitResponse, *api.Error)
	polls   func(n int, id string) *api.JobDetail // answers GET job number n (from 0); nil: from jobs
	log     http.HandlerFunc
	actions []string // requests to act, as seen
	matched int      // answer to a count
	polled  int
	news    chan struct{} // one for each job that was read: it has changed again
	seen    []string      // method and URI of each request
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.seen = append(f.seen, r.Method+" "+r.RequestURI)
	if f.news == nil {
		f.news = make(chan struct{}, 1000)
	}
	f.mu.Unlock()
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+api.PathJobs, f.list)
	mux.HandleFunc("POST "+api.PathJobs, f.post)
	mux.HandleFunc("GET "+api.PathJob, f.job)
	mux.HandleFunc("GET "+api.PathJobLog, func(w http.ResponseWriter, r *http.Request) { f.log(w, r) })
	mux.HandleFunc("GET "+api.PathExplain, func(w http.ResponseWriter, r *http.Request) {
		if e := f.why[r.PathValue("id")]; e != nil {
			answer(w, e)
			return
		}
		refuse(w, noJob(r.PathValue("id")))
	})
	mux.HandleFunc("POST "+api.PathJobAction, f.act)
	mux.HandleFunc("GET "+api.PathCluster, func(w http.ResponseWriter, _ *http.Request) { answer(w, api.ClusterInfo{Nodes: f.nodes}) })
	mux.HandleFunc("GET "+api.PathEvents, f.events)
	mux.HandleFunc("GET "+api.PathDiag, func(w http.ResponseWriter, _ *http.Request) { answer(w, sampleDiag()) })
	mux.HandleFunc("GET "+api.PathStatus, func(w http.ResponseWriter, _ *http.Request) { answer(w, api.Status{You: "ann"}) })
	mux.ServeHTTP(w, r)
}

func answer(w io.Writer, body any) {
	if err := json.NewEncoder(w).Encode(body); err != nil {
		panic(err)
	}
}

func refuse(w http.ResponseWriter, e *api.Error) {
	w.WriteHeader(e.Status)
	answer(w, e)
}

func noJob(id string) *api.Error {
	return &api.Error{Status: 404, Code: api.CodeNotFound, Message: "no job " + id, Hint: "gqueue --all lists those that have ended"}
}

func (f *fake) list(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	out := api.JobList{Jobs: []api.Job{}}
	for _, d := range f.jobs {
		if q.Get("all") != "true" && d.State.Final() {
			continue
		}
		if u := q.Get("user"); u != "" && u != d.User {
			continue
		}
		if s := q.Get("state"); s != "" && !strings.Contains(","+s+",", ","+string(d.State)+",") {
			continue
		}
		out.Jobs = append(out.Jobs, d.Job)
	}
	out.Total = len(out.Jobs)
	if n, err := strconv.Atoi(q.Get("limit")); err == nil && n < len(out.Jobs) {
		out.Jobs = out.Jobs[:n]
	}
	answer(w, out)
}

func (f *fake) post(w http.ResponseWriter, r *http.Request) {
	var req api.SubmitRequest
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		panic(err)
	}
	resp, e := f.submit(&req, r.Header.Get(api.HeaderIdempotencyKey))
	if e != nil {
		refuse(w, e)
		return
	}
	answer(w, resp)
}

// events tells that a job has changed each time that one was read.
func (f *fake) events(w http.ResponseWriter, r *http.Request) {
	if id := r.URL.Query().Get("job"); f.polls == nil && id != "" && !slices.ContainsFunc(f.jobs, func(d api.JobDetail) bool { return fmt.Sprint(d.Number) == id }) {
		refuse(w, noJob(id))
		return
	}
	io.WriteString(w, "id: 1\nevent: ping\ndata: {}\n\n")
	for {
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
			return
		case <-f.news:
			io.WriteString(w, "id: 2\nevent: job\ndata: {}\n\n")
		}
	}
}

func (f *fake) job(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	f.mu.Lock()
	n := f.polled
	f.polled++
	f.mu.Unlock()
	defer func() { f.news <- struct{}{} }()
	if f.polls != nil {
		if d := f.polls(n, id); d != nil {
			answer(w, d)
			return
		}
		panic(http.ErrAbortHandler)
	}
	for _, d := range f.jobs {
		if fmt.Sprint(d.Number) == id || strings.HasPrefix(d.UUID, id) {
			answer(w, d)
			return
		}
	}
	refuse(w, noJob(id))
}

func (f *fake) act(w http.ResponseWriter, r *http.Request) {
	var req api.ActionRequest
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		panic(err)
	}
	if req.Count {
		answer(w, api.ActionResponse{Matched: f.matched})
		return
	}
	text, _ := json.Marshal(req)
	f.actions = append(f.actions, r.PathValue("action")+" "+string(text))
	var out api.ActionResponse
	for _, id := range req.IDs {
		out.Results = append(out.Results, f.actOn(id))
	}
	out.Matched = max(len(req.IDs), f.matched)
	answer(w, out)
}

func (f *fake) actOn(id string) api.ActionResult {
	for _, d := range f.jobs {
		switch {
		case fmt.Sprint(d.Number) != id:
		case d.User != "ann":
			return api.ActionResult{ID: id, Number: d.Number, Error: &api.Error{Status: 403, Code: api.CodeDenied, Message: "job " + id + " belongs to " + d.User}}
		case d.State.Final():
			return api.ActionResult{ID: id, Number: d.Number, Before: d.State, After: d.State}
		default:
			return api.ActionResult{ID: id, Number: d.Number, Before: d.State, After: job.Cancelled}
		}
	}
	return api.ActionResult{ID: id, Error: noJob(id)}
}

// bench is a command's surroundings in a test.
type bench struct {
	out, err bytes.Buffer
	app      *App
	socket   string
	slept    int
}

func start(t testing.TB, h http.Handler) *bench {
	t.Helper()
	b := &bench{socket: filepath.Join(t.TempDir(), "s")}
	if h != nil {
		l, err := net.Listen("unix", b.socket)
		if err != nil {
			t.Fatal(err)
		}
		srv := &httptest.Server{Listener: l, Config: &http.Server{Handler: h}}
		srv.Start()
		t.Cleanup(srv.Close)
	}
	b.app = &App{
		Out: &b.out, Err: &b.err, In: strings.NewReader(""),
		Client: &client.Client{Address: b.socket},
		Now:    func() time.Time { return now },
		Sleep: func(ctx context.Context, _ time.Duration) error {
			b.slept++
			return ctx.Err()
		},
	}
	t.Cleanup(func() { b.app.Client.Close() })
	return b
}

// golden compares what a run printed, and its exit code, with testdata.
func (b *bench) golden(t *testing.T, name string, code int) {
	t.Helper()
	got := fmt.Sprintf("exit %d\n-- stdout --\n%s-- stderr --\n%s", code, b.out.String(), strings.ReplaceAll(b.err.String(), b.socket, "SOCKET"))
	path := filepath.Join("testdata", name+".txt")
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (run the test with -rewrite, and read what it writes)", err)
	}
	if diff := gocmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func ptr[T any](v T) *T { return &v }

// sampleJobs are one job of each kind that looks different.
func sampleJobs() []api.JobDetail {
	base := func(n job.Number, name string, st job.State) api.Job {
		return api.Job{
			ID: fmt.Sprint(n), Number: n, UUID: fmt.Sprintf("a280f7e8-b1e6-41e9-93a1-%012d", n), Name: name, User: "ann", Project: "vision", State: st,
			Submitted: now.Add(-2 * time.Hour), LimitS: 4 * 3600, GPUs: 2, CPUs: 8, MemBytes: 32 << 30, Cluster: 1, Priority: 5000, QOS: "normal",
		}
	}
	running := base(12, "train", job.Running)
	running.Started, running.Nodes = now.Add(-90*time.Minute), []string{"gpu01", "gpu02", "gpu03", "gpu07"}
	waiting := base(13, "a-job-with-quite-a-long-name-for-a-narrow-terminal", job.Queued)
	waiting.Reason, waiting.ReasonText, waiting.EstStart = "Resources", "waits for 2 GPUs of cluster 1, where 1 is free", now.Add(25*time.Minute)
	held := base(14, "kept", job.OnHold)
	held.User, held.GPUs, held.MemBytes, held.Reason, held.LimitS = "bob", 0.5, 1536<<20, "Held", 0
	evil := base(15, "red\x1b[31m\u202e\u009b2Jname\n", job.Queued)
	evil.User, evil.Reason = "über", "Priority"
	evil.Factors = &api.Priority{Total: 900, Age: 100, FairShare: 700, Size: 50, QOS: 50}
	waiting.Factors = &api.Priority{Total: 5300, Age: 300, FairShare: 2000, Size: 1000, QOS: 1500, User: -500, Slowdown: 1000}
	failed := base(9, "oom", job.Failed)
	failed.Started, failed.Ended, failed.ExitCode = now.Add(-26*time.Hour), now.Add(-time.Hour), ptr(137)
	failed.Nodes, failed.Reason, failed.ReasonText = []string{"gpu01"}, "OOM", "used more than its 32 GiB of memory"
	private := base(16, "job-a280f7", job.Running)
	private.User, private.Project, private.Private, private.Started, private.Nodes = "eve", "other", true, now.Add(-30*time.Hour), []string{"gpu04"}

	detail := api.JobDetail{Job: failed, Version: 7, Class: job.Program}
	detail.Spec = &job.Spec{Name: "oom", Description: "eats memory"}
	detail.Spec.Request.Resources = job.Resources{GPUs: 2, CPUs: 8, CPUMemoryGB: 32, GPUModel: []string{"V100", "A100"}, MinCudaVersion: 12}
	detail.Spec.Request.Docker = job.Docker{
		Image: "debian:stable", Command: job.Command{Argv: []string{"python", "train one.py"}},
		Environment: map[string]string{"B": "secret", "A": "x"},
		Storage:     []job.Storage{{HostPath: "/project", ContainerPath: "/project"}, {HostPath: "tmpfs", ContainerPath: "/t", SizeGB: 2}},
	}
	detail.Attempts = []api.Attempt{{Attempt: 1, Start: failed.Started, End: failed.Ended, Ranks: []api.Rank{{
		Allocation: api.Allocation{Node: "gpu01", CPUs: 8, MemBytes: 32 << 30, GPUs: []api.GPUShare{
			{UUID: "GPU-5fd4f087-86f3-7a43-b711-4771313afc50", Milli: 1000}, {UUID: "GPU-6fd4f087-86f3-7a43-b711-4771313afc50", Milli: 500}}},
		Phase: "ended", Cores: "0-7",
		Ports: []job.PortMapping{{ContainerPort: 80, HostPort: 20000}, {ContainerPort: 443, HostPort: 8443, HostIP: "2001:db8::1"}},
		Exit:  &node.Exit{Code: 137, Signal: 9, Reason: job.OOM, StartedMS: failed.Started.UnixMilli(), EndedMS: failed.Ended.UnixMilli(), PeakMem: 32 << 30},
	}}}}
	at := failed.Started.Add(-time.Minute)
	detail.Events = []api.Event{
		{Time: at, State: job.Queued, Message: "submitted by ann"},
		{Time: at.Add(30 * time.Second), State: job.Assigned, Message: "2 GPUs on gpu01"},
		{Time: at.Add(31 * time.Second), Message: "pulling debian:stable"},
		{Time: at.Add(60 * time.Second), State: job.Running},
		{Time: failed.Ended, State: job.Failed, Message: "exit code 137, out of memory"},
	}
	queued := api.JobDetail{Job: waiting, Version: 3, Position: 2, NumQueued: 5, Spec: &job.Spec{Name: waiting.Name}}
	return []api.JobDetail{{Job: running, Version: 2}, queued, {Job: held, Version: 1}, {Job: evil, Version: 1}, detail, {Job: private, Version: 1}}
}

func sampleDiag() api.Diagnosis {
	return api.Diagnosis{Version: "v1", Started: now.Add(-26 * time.Hour), Now: now, Turns: api.Timing{Count: 1000, MeanMS: 0.512, P50MS: 0.4, P99MS: 12.4},
		Commits: api.Timing{Count: 900, MeanMS: 0.4, P50MS: 0.3, P99MS: 3100}, Evaluated: 120.4, InboxSize: 4096, Inbox: 2, Records: 5000, Streams: 7,
		Waiting: 300, Running: 40, Shapes: 12, Starts: 77, Backfilled: 9, DiskFree: 90 << 30, DiskReserve: 1 << 30, StoreBytes: 12 << 20, HeapBytes: 60 << 20, Goroutines: 31,
		Routes: []api.RouteUse{{Route: "GET /v1/jobs", Timing: api.Timing{Count: 500, MeanMS: 2, P50MS: 1.5, P99MS: 40}, Refused: 3}}}
}

func sampleClock() time.Time { return now }
