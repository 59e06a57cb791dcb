package ctld

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"gbatch/internal/api"
	"gbatch/internal/control"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// filter selects jobs. What is empty selects all.
type filter struct {
	State   string `query:"state" doc:"states, separated by commas"`
	User    string `query:"user"`
	Project string `query:"project"`
	Name    string `query:"name"`
	Node    string `query:"node"`
	Cluster int    `query:"cluster"`
	All     bool   `query:"all" doc:"jobs that have ended too"`
	QOS     string `query:"qos"`
	Limit   int    `query:"limit" minimum:"0"`
	Factors bool   `query:"factors" doc:"with the terms of the priorities of those that wait"`
}

func (f filter) check() error {
	for _, s := range strings.Split(f.State, ",") {
		if s != "" && !slices.Contains(job.States, job.State(strings.ToUpper(s))) {
			return &api.Error{Status: 400, Code: api.CodeBadRequest, Message: fmt.Sprintf("there is no state %q", s), Hint: fmt.Sprintf("states: %v", job.States)}
		}
	}
	return nil
}

// matches says whether a job is selected. Only those who may see its name can
// ask for it by name.
func (f filter) matches(j *state.Job, private func(*state.Owner) bool) bool {
	return (f.User == "" || f.User == j.Owner.User) &&
		(f.Project == "" || f.Project == j.Owner.Project) &&
		(f.Name == "" || f.Name == j.Name && !private(j.Owner)) &&
		(f.State == "" || f.hasState(j.Status())) &&
		(f.QOS == "" || f.QOS == j.Owner.QOS) &&
		(f.Node == "" || j.On(f.Node)) &&
		(f.Cluster == 0 || f.Cluster == clusterOfJob(j))
}

// clusterOfJob is where a job is or was, or where it is to be; 0 anywhere.
func clusterOfJob(j *state.Job) int {
	if a := j.Attempt; a != nil && len(a.Ranks) > 0 && a.Ranks[0].Cluster > 0 && !j.State.Pending() {
		return a.Ranks[0].Cluster
	}
	return j.Request.Shape.Cluster
}

func (f filter) hasState(st job.State) bool {
	return slices.Contains(strings.Split(strings.ToUpper(f.State), ","), string(st))
}

func (s *Server) list(ctx context.Context, f *filter) (*body[api.JobList], error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	id := caller(ctx)
	v := s.loop.view.Load()
	private := func(o *state.Owner) bool { return !s.mayTouch(id, o) }
	sums := v.Summaries()
	var found []*state.Job
	for j := range v.All() {
		if (f.All || f.State != "" || !j.State.Final()) && f.lists(j, sums, private) {
			found = append(found, j)
		}
	}
	slices.SortFunc(found, inListOrder)
	out := api.JobList{Jobs: make([]api.Job, 0, len(found)), Total: len(found)}
	if f.Limit > 0 && len(found) > f.Limit {
		found = found[:f.Limit]
	}
	for _, j := range found {
		out.Jobs = append(out.Jobs, s.row(v, id, j, sums[j.Number]))
	}
	if f.Factors {
		if err := s.addFactors(ctx, out.Jobs); err != nil {
			return nil, s.fail(err)
		}
	}
	return &body[api.JobList]{out}, nil
}

// addFactors fills in the priorities of the jobs that wait.
func (s *Server) addFactors(ctx context.Context, jobs []api.Job) error {
	var waiting []job.Number
	for i := range jobs {
		if jobs[i].State == job.Queued {
			waiting = append(waiting, jobs[i].Number)
		}
	}
	var factors map[job.Number]sched.Factors
	err := s.loop.ask(ctx, func(c *control.Controller, now sched.Time) { factors = c.Priorities(now, waiting) })
	if err != nil {
		return err
	}
	for i := range jobs {
		if f, ok := factors[jobs[i].Number]; ok {
			jobs[i].Factors = priorityToAPI(f)
		}
	}
	return nil
}

// inListOrder puts running jobs first, then waiting ones, then ended ones,
// each by number.
func inListOrder(a, b *state.Job) int {
	return cmp.Or(cmp.Compare(listGroup(a.State), listGroup(b.State)), cmp.Compare(a.Number, b.Number))
}

func listGroup(s job.State) int {
	switch {
	case s.Active():
		return 0
	case s.Pending():
		return 1
	}
	return 2
}

// find gets a job by what a user types, from the table or from history; nil
// without an error means that there is none.
func (s *Server) find(text string) (*state.Job, error) {
	j, refusal := s.loop.view.Load().Find(text)
	if refusal == nil {
		return j, nil
	}
	if refusal.Code != state.NotFound {
		return nil, refused(refusal)
	}
	if n, set, ok := state.ParseTask(text); ok && set.Len() == 1 {
		return s.pastTask(n, set[0].First, refusal)
	}
	n, ok := state.ParseNumber(text)
	if !ok {
		raw, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
		if err != nil || len(raw) != 16 {
			return nil, refused(refusal)
		}
		if n, ok, err = s.store.NumberOf([16]byte(raw)); err != nil || !ok {
			return nil, errors.Join(err, refused(refusal))
		}
	}
	j, err := s.history(n)
	if err == nil && j == nil {
		return nil, refused(refusal)
	}
	return j, err
}

func (s *Server) history(n job.Number) (*state.Job, error) {
	v, ok, err := s.store.Get(state.Record{Kind: state.KindHistory, Job: n})
	if err != nil || !ok {
		return nil, err
	}
	return state.DecodeJob(v)
}

type showInput struct {
	ID      string `path:"id"`
	Wait    int    `query:"wait" minimum:"0" maximum:"300" doc:"seconds to wait for a change"`
	Version uint64 `query:"version" doc:"the version that the caller has"`
}

func (s *Server) show(ctx context.Context, in *showInput) (*body[api.JobDetail], error) {
	j, err := s.find(in.ID)
	if err != nil {
		return nil, s.fail(err)
	}
	if in.Wait > 0 && !j.State.Final() {
		j = s.waitChange(ctx, j, in)
	}
	d, err := s.detail(caller(ctx), j)
	if err != nil {
		return nil, s.fail(err)
	}
	if j.State == job.Queued && !d.Private {
		// A controller that is too busy to say the place still shows the job.
		_ = s.loop.ask(ctx, func(c *control.Controller, now sched.Time) {
			d.Position, d.NumQueued = c.Position(now, j.Number)
			if f, ok := c.Priorities(now, []job.Number{j.Number})[j.Number]; ok {
				d.Factors = priorityToAPI(f)
			}
		})
	}
	return &body[api.JobDetail]{d}, nil
}

// waitChange waits until the job's version is not the caller's, or time is up.
func (s *Server) waitChange(ctx context.Context, j *state.Job, in *showInput) *state.Job {
	late := time.NewTimer(time.Duration(in.Wait) * time.Second)
	defer late.Stop()
	for {
		ring, done := s.loop.jobs.wait(cmp.Or(j.Number, j.Parent)) // of a task that is no job yet: its array
		if now, _ := s.loop.view.Load().Find(j.ID()); now != nil {
			j = now
		}
		if j.Version != in.Version {
			done()
			return j
		}
		select {
		case <-ring:
			done()
		case <-late.C:
			done()
			return j
		case <-ctx.Done():
			done()
			return j
		}
	}
}

func (s *Server) detail(id identity, j *state.Job) (api.JobDetail, error) {
	v := s.loop.view.Load()
	d := api.JobDetail{Job: s.toAPI(v, id, j), Version: j.Version}
	if d.Private {
		return d, nil
	}
	d.Used = s.used(j)
	if j.State.Final() {
		d.Class = j.Reason.Class()
	}
	s.tasksToAPI(&d.Job, id, v, j)
	var err error
	if d.Spec, err = s.document(j); err != nil {
		return d, err
	}
	err = s.store.Of(state.KindEvent, j.Number, func(r state.Record) error {
		var l state.Line
		if err := json.Unmarshal(r.Value, &l); err != nil {
			return err
		}
		d.Events = append(d.Events, api.Event{Time: toTime(l.Time), State: l.State, Message: l.Message})
		return nil
	})
	if err != nil {
		return d, err
	}
	err = s.store.Of(state.KindAttempt, j.Number, func(r state.Record) error {
		var a state.Attempt
		if err := json.Unmarshal(r.Value, &a); err != nil {
			return err
		}
		d.Attempts = append(d.Attempts, attemptToAPI(&a))
		return nil
	})
	if j.State.Active() {
		d.Attempts = append(d.Attempts, attemptToAPI(j.Attempt))
		last := &d.Attempts[len(d.Attempts)-1]
		for i := range last.Ranks {
			if last.Ranks[i].Exit == nil {
				last.Ranks[i].Use = s.samples.use(last.Ranks[i].Node, j.RankID(i))
			}
		}
		d.Progress = j.Attempt.Ranks[0].Progress
	}
	if j.Attempt != nil {
		d.Done = j.Attempt.Ranks[0].Done
	}
	return d, err
}

type logInput struct {
	ID     string `path:"id"`
	Offset int64  `query:"offset" minimum:"0"`
	Tail   int64  `query:"tail" minimum:"0" doc:"only the last lines"`
	Rank   int    `query:"rank" minimum:"0"`
	Since  int64  `query:"since" minimum:"0" doc:"only what was written since, in milliseconds since 1970"`
	Follow bool   `query:"follow" doc:"go on until the task ends"`
}

func (s *Server) jobLog(ctx context.Context, in *logInput) (*huma.StreamResponse, error) {
	j, err := s.find(in.ID)
	if err != nil {
		return nil, s.fail(err)
	}
	if !s.mayTouch(caller(ctx), j.Owner) {
		return nil, &api.Error{Status: 403, Code: api.CodeDenied, Message: fmt.Sprintf("job %d belongs to project %s", j.Number, j.Owner.Project)}
	}
	switch {
	case j.Tasks != nil:
		return nil, arrayHasNone(j, "log", "glog")
	case j.Attempt == nil:
		return nil, &api.Error{Status: 409, Code: api.CodeConflict, Message: fmt.Sprintf("job %s is %s and has not started: there is no log yet", j.ID(), j.State),
			Hint: "`gqueue show` says why it waits"}
	case in.Rank >= len(j.Attempt.Ranks):
		return nil, &api.Error{Status: 404, Code: api.CodeNotFound, Message: fmt.Sprintf("job %d has ranks 0 to %d", j.Number, len(j.Attempt.Ranks)-1)}
	}
	node := j.Attempt.Ranks[in.Rank].Alloc.Node
	req := api.StreamRequest{Kind: api.StreamLog, Rank: j.RankID(in.Rank), Offset: in.Offset, Tail: in.Tail, SinceMS: in.Since, Follow: in.Follow}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		_, w := humago.Unwrap(hc)
		err := s.streams.begin()
		if err == nil {
			defer s.streams.end()
			err = s.streams.copy(hc.Context(), w, node, req, func() { s.loop.nodes.notify(node) })
		}
		var e *api.Error
		switch {
		case errors.As(err, &e):
			writeError(w, e)
		case err != nil:
			// The stream broke after bytes were sent: cut the connection, so that
			// the client does not take it for the end.
			panic(http.ErrAbortHandler)
		}
	}}, nil
}
