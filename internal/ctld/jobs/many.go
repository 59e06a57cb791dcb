package jobs

import (
	"context"

	"gbatch/internal/api"
	"gbatch/internal/ctld/loop"
)

// SubmitManyInput is several submissions.
type SubmitManyInput struct {
	Body api.SubmitManyRequest
}

// SubmitMany is Submit for several jobs: each is checked, counted and answered as
// if it had come alone, and one that is refused keeps no other one out. They go into
// the queue in their order, with a commit for as many as a turn takes. another counts
// one more submission of this caller, and fail says an error as an answer.
func (s *Submissions) SubmitMany(ctx context.Context, in *SubmitManyInput, another func() *api.Error, fail func(error) *api.Error) (*api.SubmitManyResponse, error) {
	if n := len(in.Body.Jobs); n == 0 || n > api.MaxSubmissions {
		return nil, api.Errorf(api.CodeBadRequest, "jobs has %d entries: want 1 to %d", n, api.MaxSubmissions)
	}
	out := &api.SubmitManyResponse{Results: make([]api.SubmitResult, len(in.Body.Jobs))}
	waits := make([]func() (*api.SubmitResponse, error), len(in.Body.Jobs))
	for i, one := range in.Body.Jobs {
		if i > 0 {
			if out.Results[i].Error = another(); out.Results[i].Error != nil {
				continue
			}
		}
		var err error
		if waits[i], err = s.begin(ctx, &SubmitInput{Key: one.Key, Body: one.SubmitRequest}); err != nil {
			out.Results[i].Error = fail(err)
		}
	}
	for i, wait := range waits {
		if wait == nil {
			continue
		}
		r, err := wait()
		if err != nil {
			out.Results[i].Error = fail(err)
			continue
		}
		out.Results[i].Submitted = r
	}
	return out, nil
}

// maxKey is how long an idempotency key may be.
const maxKey = 200

// begin is Submit, and answers later.
func (s *Submissions) begin(ctx context.Context, in *SubmitInput) (wait func() (*api.SubmitResponse, error), err error) {
	if in.Body.DryRun {
		return nil, api.Errorf(api.CodeBadRequest, "dryRun is for one job: ask POST %s", api.PathJobs)
	}
	if len(in.Key) > maxKey {
		return nil, api.Errorf(api.CodeBadRequest, "the key has %d bytes, of at most %d", len(in.Key), maxKey)
	}
	w, err := s.work(ctx, in)
	if err != nil {
		return nil, err
	}
	if w.done {
		return func() (*api.SubmitResponse, error) { return &w.out, nil }, nil
	}
	taken := loop.Begin(ctx, s.Loop, w.ev)
	return func() (*api.SubmitResponse, error) {
		a, err := s.untilKnown(ctx, w.ev, taken)
		if err != nil {
			return nil, err
		}
		return s.answer(ctx, in, w, a)
	}, nil
}
