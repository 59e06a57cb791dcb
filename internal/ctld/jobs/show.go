package jobs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/control"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/jobstore"
	"gbatch/internal/ctld/loop"
	"gbatch/internal/ctld/places"
	"gbatch/internal/ctld/usage"
	"gbatch/internal/ctld/wire"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// filter selects jobs. What is empty selects all.
type filter struct {
	State   string `query:"state" doc:"states, separated by commas; COMPLETING: those of any state that are being ended"`
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
		if st := job.State(strings.ToUpper(s)); s != "" && st != job.Completing && !slices.Contains(job.States, st) {
			return api.Errorf(api.CodeBadRequest, "there is no state %q", s).WithHint(fmt.Sprintf("states: %v, and %s", job.States, job.Completing))
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
		(f.State == "" || f.hasState(j.Status()) || j.Completing() && f.hasState(job.Completing)) &&
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

// Queries shows jobs.
type Queries struct {
	Loop   *loop.Loop
	Jobs   *jobstore.Reader
	Rights *access.Rights
	Used   *usage.Used
}

// List lists jobs: those that run first, then those that wait.
func (s *Queries) List(ctx context.Context, f *filter) (*api.JobList, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	id := access.Caller(ctx)
	v := s.Loop.View()
	private := func(o *state.Owner) bool { return s.Rights.Private(id, o) }
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
			return nil, err
		}
	}
	return &out, nil
}

// addFactors fills in the priorities of the jobs that wait and that the caller
// may see.
func (s *Queries) addFactors(ctx context.Context, jobs []api.Job) error {
	var waiting []job.Number
	for i := range jobs {
		if jobs[i].State == job.Queued && !jobs[i].Private {
			waiting = append(waiting, jobs[i].Number)
		}
	}
	var factors map[job.Number]sched.Factors
	err := s.Loop.Ask(ctx, func(c *control.Controller, now sched.Time) { factors = c.Priorities(now, waiting) })
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

type showInput struct {
	ID      string `path:"id"`
	Wait    int    `query:"wait" minimum:"0" maximum:"300" doc:"seconds to wait for a change"`
	Version uint64 `query:"version" doc:"the version that the caller has"`
}

// Show shows one job, at once or when its version is not the caller's any more.
func (s *Queries) Show(ctx context.Context, in *showInput) (*api.JobDetail, error) {
	j, err := s.Jobs.Find(in.ID)
	if err != nil {
		return nil, err
	}
	if in.Wait > 0 && !j.State.Final() {
		j = s.waitChange(ctx, j, in)
	}
	if !places.Answer(ctx) {
		return nil, ctx.Err()
	}
	d, err := s.detail(access.Caller(ctx), j)
	if err != nil {
		return nil, err
	}
	if j.State == job.Queued && !d.Private {
		// A controller that is too busy to say the place still shows the job.
		_ = s.Loop.Ask(ctx, func(c *control.Controller, now sched.Time) {
			d.Position, d.NumQueued = c.Position(now, j.Number)
			if f, ok := c.Priorities(now, []job.Number{j.Number})[j.Number]; ok {
				d.Factors = priorityToAPI(f)
			}
		})
	}
	return &d, nil
}

// waitChange waits until the job's version is not the caller's, or time is up.
func (s *Queries) waitChange(ctx context.Context, j *state.Job, in *showInput) *state.Job {
	late := time.NewTimer(time.Duration(in.Wait) * time.Second)
	defer late.Stop()
	for {
		ring, done := s.Loop.Jobs.Wait(cmp.Or(j.Number, j.Parent)) // of a task that is no job yet: its array
		if now, _ := s.Loop.View().Find(j.ID()); now != nil {
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

func (s *Queries) detail(id access.Identity, j *state.Job) (api.JobDetail, error) {
	v := s.Loop.View()
	d := api.JobDetail{Job: wire.Job(v, j, s.Rights.Private(id, j.Owner)), Version: j.Version}
	if d.Private {
		return d, nil
	}
	d.Used = s.Used.Of(j)
	if j.State.Final() {
		d.Class = j.Reason.Class()
	}
	tasksToAPI(&d.Job, v, j)
	var err error
	if d.Spec, err = s.Jobs.Document(j); err != nil {
		return d, err
	}
	if d.Events, err = s.Jobs.Timeline(j.Number); err != nil {
		return d, err
	}
	if d.Steps, err = s.Jobs.Steps(j); err != nil {
		return d, err
	}
	d.Attempts, err = s.Jobs.Attempts(j.Number)
	if j.State.Active() {
		d.Attempts = append(d.Attempts, wire.Attempt(j.Attempt))
		last := &d.Attempts[len(d.Attempts)-1]
		for i := range last.Ranks {
			if last.Ranks[i].Exit == nil {
				last.Ranks[i].Use = s.Used.Samples.Use(last.Ranks[i].Node, j.RankID(i), j.Identity())
			}
		}
		d.Progress = j.Attempt.Ranks[0].Progress
	}
	if j.Attempt != nil {
		d.Done = j.Attempt.Ranks[0].Done
	}
	return d, err
}
