package jobs

import (
	"context"
	"errors"

	"gbatch/internal/api"
	"gbatch/internal/control"
	"gbatch/internal/ctld/loop"
	"gbatch/internal/job"
	"gbatch/internal/state"
)

// submitTries bounds how often a submission is sent to the loop because
// jobs that it names left the table in between.
const submitTries = 3

// untilKnown is what the loop says of a submission, which may ask first for what
// history knows of the jobs that it waits for.
func (s *Submissions) untilKnown(ctx context.Context, ev control.Submit, taken func() (control.Submitted, error)) (control.Submitted, error) {
	for range submitTries {
		a, err := taken()
		s.Meters.Submission(a, err)
		if err != nil || len(a.Past) == 0 {
			return a, err
		}
		if ev.Past, err = s.named(a.Past); err != nil {
			return a, err
		}
		taken = loop.Begin(ctx, s.Loop, ev)
	}
	return control.Submitted{}, loop.ErrBusy
}

// named is what history knows of jobs; nil for those that it does not know.
func (s *Submissions) named(ids []string) (map[string]*state.Job, error) {
	out := map[string]*state.Job{}
	for _, id := range ids {
		j, err := s.Jobs.Find(id)
		if e, ok := errors.AsType[*api.Error](err); ok && e.Code == api.CodeNotFound {
			j, err = nil, nil
		}
		if err != nil {
			return nil, err
		}
		out[id] = j
	}
	return out, nil
}

// setDependencies puts Slurm's form of dependencies in place of the document's.
func setDependencies(s *job.Spec, text string) error {
	if text == "" {
		return nil
	}
	deps, any, err := job.ParseDependencies(text)
	if err != nil {
		return api.Errorf(api.CodeInvalidJob, "the dependency cannot be read").
			WithProblems(api.Problem{Path: "--dependency", Message: err.Error(), Hint: job.DependencyHint})
	}
	if s.Request.Scheduling.Interactive {
		return api.Errorf(api.CodeInvalidJob, "an interactive job starts at once or fails, and so cannot wait for others")
	}
	if s.Gbatch == nil {
		s.Gbatch = &job.Gbatch{}
	}
	s.Gbatch.Dependencies, s.Gbatch.DependOnAny = deps, any
	return nil
}
