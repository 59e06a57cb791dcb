package jobs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/control"
	"gbatch/internal/ctld/access"
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
	Place   string `query:"partition" doc:"a partition by its name"`
	All     bool   `query:"all" doc:"jobs that have ended too"`
	QOS     string `query:"qos"`
	Limit   int    `query:"limit" minimum:"0"`
	Factors bool   `query:"factors" doc:"with the terms of the priorities of those that wait"`
	Steps   bool   `query:"steps" doc:"with the steps that run"`
	Text    string `query:"text" maxLength:"200" doc:"words that all are in what the list shows: id, name, user, project, state, reason, nodes"`
	Array   uint64 `query:"array" doc:"only tasks of this array that have lines of their own"`
	Fold    bool   `query:"fold" doc:"without tasks whose array has a line, which tells their number"`
	Newest  bool   `query:"newest" doc:"of those that have ended the last first"`
	Offset  int    `query:"offset" minimum:"0" doc:"jobs to leave out at the beginning"`
	MaxAge  int    `query:"maxAge" minimum:"0" maximum:"60" doc:"seconds that the answer may be old, which spares the controller work"`
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
		(f.Cluster == 0 || f.Cluster == clusterOfJob(j)) &&
		(f.Place == "" || inPartition(j, f.Place)) &&
		(f.Array == 0 || j.Parent == job.Number(f.Array))
}

// inPartition says whether a job runs in a partition, or may.
func inPartition(j *state.Job, name string) bool {
	if _, in := j.Where(); in != "" && !j.State.Pending() {
		return in == name
	}
	return slices.Contains(j.Request.Shape.Partitions, name)
}

// clusterOfJob is where a job is or was, or where it is to be; 0 anywhere.
func clusterOfJob(j *state.Job) int {
	if in, _ := j.Where(); in > 0 && !j.State.Pending() {
		return in
	}
	return j.Request.Shape.Cluster
}

func (f filter) hasState(st job.State) bool {
	return slices.Contains(strings.Split(strings.ToUpper(f.State), ","), string(st))
}

// List lists jobs: those that run first, then those that wait, then those that
// have ended.
func (s *Queries) List(ctx context.Context, f *filter) (*api.JobList, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	id := access.Caller(ctx)
	l := s.orders.Of(s.Loop.View(), s.Loop.Now(), time.Duration(f.MaxAge)*time.Second, s.order)
	found, total, below := l.part(searchFor(f, func(o *state.Owner) bool { return s.Rights.Private(id, o) }))
	out := api.JobList{Total: total, NoUser: total == 0 && f.User != "" && f.User != id.User && !l.known(f.User) && !s.Rights.KnowsUser(s.Keys, f.User)}
	out.Jobs = make([]api.Job, 0, len(found)) // never null; a row is large, so that growing would copy much
	for _, j := range found {
		row := s.row(l.view, id, j, l.sums[j.Number])
		if f.Steps && !row.Private {
			row.Steps = wire.OpenSteps(j)
		}
		if row.Tasks != nil {
			row.Tasks.NumBelow = below[j.Number]
		}
		out.Jobs = append(out.Jobs, row)
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
