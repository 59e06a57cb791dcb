package jobs

import (
	"cmp"
	"context"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/control"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/curves"
	"gbatch/internal/ctld/jobstore"
	"gbatch/internal/ctld/keep"
	"gbatch/internal/ctld/loop"
	"gbatch/internal/ctld/places"
	"gbatch/internal/ctld/usage"
	"gbatch/internal/ctld/wire"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Queries shows jobs.
type Queries struct {
	Loop   *loop.Loop
	Jobs   *jobstore.Reader
	Rights *access.Rights
	Keys   *access.Keyring
	Used   *usage.Used
	Kept   *keep.Store // logs
	Curves *curves.Store
	Untold func(job.Number) []api.Untold // messages about a job that nobody has taken

	orders jobstore.Made[*ordered]
	ends   ends
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
	usage.Advise(j, d.Used)
	if j.State.Final() {
		d.Class = j.Reason.Class()
	}
	tasksToAPI(&d.Job, v, j)
	d.Untold = s.Untold(j.Number)
	var err error
	if d.Spec, err = s.Jobs.Document(j); err != nil {
		return d, err
	}
	if d.Events, err = s.Jobs.Timeline(j); err != nil {
		return d, err
	}
	if d.Steps, err = s.Jobs.Steps(j); err != nil {
		return d, err
	}
	d.Attempts, err = s.Jobs.Attempts(j)
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
	if at := j.Last(); at != nil {
		d.Done = at.Ranks[0].Done
		d.Log = s.logState(j, at)
	}
	return d, err
}

// logState is how far the copies of the logs of a job's attempt go; nil: there
// are none.
func (s *Queries) logState(j *state.Job, at *state.Attempt) *api.LogState {
	out := api.LogState{Complete: true, Archived: true}
	for i := range at.Ranks {
		st, ok := s.Kept.State(keep.Key{User: j.Owner.User, UUID: j.Identity(), Attempt: at.Attempt, Rank: uint32(i)})
		if !ok {
			continue
		}
		if out.Ranks++; out.Ranks == 1 || st.Until.Before(out.Until) {
			out.Until = st.Until.UTC()
		}
		out.Bytes += st.Bytes
		out.Complete, out.Archived = out.Complete && st.Complete, out.Archived && st.Archived
	}
	if out.Ranks == 0 {
		return nil
	}
	return &out
}
