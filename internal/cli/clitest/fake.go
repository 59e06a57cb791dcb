package clitest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gbatch/internal/api"
	"gbatch/internal/job"
)

type Fake struct {
	Mu       sync.Mutex
	Jobs     []api.JobDetail
	Nodes    []api.Node
	Licenses []api.License
	Why      map[string]*api.Explanation
	Kept     []api.Reservation
	Submit   func(*api.SubmitRequest, string) (*api.SubmitResponse, *api.Error)
	Polls    func(n int, id string) *api.JobDetail // answers GET job number n (from 0); nil: from jobs
	Log      http.HandlerFunc
	Actions  []string // requests to act, as seen
	Matched  int      // answer to a count
	polled   int
	changed  chan struct{} // one for each job that was read: it has changed again
	Seen     []string      // method and URI of each request
}

func (f *Fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.Mu.Lock()
	f.Seen = append(f.Seen, r.Method+" "+r.RequestURI)
	if f.changed == nil {
		f.changed = make(chan struct{}, 1000)
	}
	f.Mu.Unlock()
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+api.PathJobs, f.list)
	mux.HandleFunc("POST "+api.PathJobs, f.post)
	mux.HandleFunc("POST "+api.PathJobsMany, f.postMany)
	mux.HandleFunc("GET "+api.PathJob, f.job)
	mux.HandleFunc("GET "+api.PathJobLog, func(w http.ResponseWriter, r *http.Request) { f.Log(w, r) })
	mux.HandleFunc("GET "+api.PathExplain, func(w http.ResponseWriter, r *http.Request) {
		if e := f.Why[r.PathValue("id")]; e != nil {
			Answer(w, e)
			return
		}
		Refuse(w, noJob(r.PathValue("id")))
	})
	mux.HandleFunc("POST "+api.PathJobAction, f.act)
	mux.HandleFunc("GET "+api.PathCluster, func(w http.ResponseWriter, _ *http.Request) {
		Answer(w, api.ClusterInfo{Nodes: f.Nodes, Licenses: f.Licenses})
	})
	mux.HandleFunc("GET "+api.PathSite, func(w http.ResponseWriter, _ *http.Request) {
		Answer(w, api.Site{QOS: []api.SiteQOS{{Name: "normal"}}})
	})
	mux.HandleFunc("GET "+api.PathPlan, func(w http.ResponseWriter, _ *http.Request) { Answer(w, samplePlan(f.Nodes)) })
	mux.HandleFunc("GET "+api.PathNode, func(w http.ResponseWriter, r *http.Request) {
		for _, n := range f.Nodes {
			if n.Name == r.PathValue("name") {
				Answer(w, samplePast(n))
				return
			}
		}
		Refuse(w, api.Errorf(api.CodeNotFound, "there is no node %q", r.PathValue("name")))
	})
	mux.HandleFunc("GET "+api.PathReservations, func(w http.ResponseWriter, _ *http.Request) { Answer(w, api.ReservationList{Reservations: f.Kept}) })
	mux.HandleFunc("GET "+api.PathEvents, f.events)
	mux.HandleFunc("GET "+api.PathDiag, func(w http.ResponseWriter, _ *http.Request) { Answer(w, sampleDiag()) })
	mux.HandleFunc("GET "+api.PathStatus, func(w http.ResponseWriter, _ *http.Request) {
		Answer(w, api.Status{You: "ann", Projects: []string{"lab", "vision"}})
	})
	mux.ServeHTTP(w, r)
}

// Answer writes what the controller answers.
func Answer(w io.Writer, body any) {
	if err := json.NewEncoder(w).Encode(body); err != nil {
		panic(err)
	}
}

// Refuse writes a refusal.
func Refuse(w http.ResponseWriter, e *api.Error) {
	w.WriteHeader(e.Status)
	Answer(w, e)
}

// noJob is the refusal of a job that is not there.
func noJob(id string) *api.Error {
	return api.Errorf(api.CodeNotFound, "no job %s", id).WithHint("gqueue --all lists those that have ended")
}

func (f *Fake) list(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	out := api.JobList{Jobs: []api.Job{}}
	for _, d := range f.Jobs {
		if q.Get("all") != "true" && d.State.Final() {
			continue
		}
		if u := q.Get("user"); u != "" && u != d.User {
			continue
		}
		if n := q.Get("name"); n != "" && n != d.Name {
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
	Answer(w, out)
}

func (f *Fake) post(w http.ResponseWriter, r *http.Request) {
	var req api.SubmitRequest
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		panic(err)
	}
	resp, e := f.Submit(&req, r.Header.Get(api.HeaderIdempotencyKey))
	if e != nil {
		Refuse(w, e)
		return
	}
	Answer(w, resp)
}

func (f *Fake) postMany(w http.ResponseWriter, r *http.Request) {
	var req api.SubmitManyRequest
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		panic(err)
	}
	var out api.SubmitManyResponse
	for _, one := range req.Jobs {
		resp, e := f.Submit(&one.SubmitRequest, one.Key)
		out.Results = append(out.Results, api.SubmitResult{Submitted: resp, Error: e})
	}
	Answer(w, out)
}

func (f *Fake) events(w http.ResponseWriter, r *http.Request) {
	if id := r.URL.Query().Get("job"); f.Polls == nil && id != "" && !slices.ContainsFunc(f.Jobs, func(d api.JobDetail) bool { return fmt.Sprint(d.Number) == id }) {
		Refuse(w, noJob(id))
		return
	}
	io.WriteString(w, "id: 1\nevent: ping\ndata: {}\n\n")
	for {
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
			return
		case <-f.changed:
			io.WriteString(w, "id: 2\nevent: job\ndata: {}\n\n")
		}
	}
}

func (f *Fake) job(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	f.Mu.Lock()
	n := f.polled
	f.polled++
	f.Mu.Unlock()
	defer func() { f.changed <- struct{}{} }()
	if f.Polls != nil {
		if d := f.Polls(n, id); d != nil {
			Answer(w, d)
			return
		}
		panic(http.ErrAbortHandler)
	}
	for _, d := range f.Jobs {
		if fmt.Sprint(d.Number) == id || strings.HasPrefix(d.UUID, id) {
			Answer(w, d)
			return
		}
	}
	Refuse(w, noJob(id))
}

func (f *Fake) act(w http.ResponseWriter, r *http.Request) {
	var req api.ActionRequest
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		panic(err)
	}
	if req.Count {
		Answer(w, api.ActionResponse{Matched: f.Matched})
		return
	}
	text, _ := json.Marshal(req)
	f.Actions = append(f.Actions, r.PathValue("action")+" "+string(text))
	var out api.ActionResponse
	for _, id := range req.IDs {
		out.Results = append(out.Results, f.actOn(id))
	}
	out.Matched = max(len(req.IDs), f.Matched)
	Answer(w, out)
}

func (f *Fake) actOn(id string) api.ActionResult {
	for _, d := range f.Jobs {
		switch {
		case fmt.Sprint(d.Number) != id:
		case d.User != "ann":
			return api.ActionResult{ID: id, Number: d.Number, Error: api.Errorf(api.CodeDenied, "job %s belongs to %s", id, d.User)}
		case d.State.Final():
			return api.ActionResult{ID: id, Number: d.Number, Before: d.State, After: d.State}
		default:
			return api.ActionResult{ID: id, Number: d.Number, Before: d.State, After: job.Cancelled}
		}
	}
	return api.ActionResult{ID: id, Error: noJob(id)}
}

// RoundTripper answers a client without a network.
type RoundTripper func(*http.Request) (*http.Response, error)

func (f RoundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
