package jobs

import (
	"context"

	"gbatch/internal/api"
	"gbatch/internal/control"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/loop"
	"gbatch/internal/ctld/wire"
	"gbatch/internal/state"
)

type resizeInput struct {
	ID   string `path:"id"`
	Body api.ResourcesRequest
}

// Resize asks for other CPU and memory for a running job.
func (s *Actions) Resize(ctx context.Context, in *resizeInput) (*api.ResourcesResponse, error) {
	id := access.Caller(ctx)
	j, err := s.Jobs.Find(in.ID)
	if err != nil {
		return nil, err
	}
	if !s.Rights.MayTouch(id, j.Owner) {
		return nil, api.Errorf(api.CodeDenied, "job %s belongs to %s", in.ID, j.Owner.User)
	}
	if j.Number == 0 {
		return nil, notByItself(in.ID)
	}
	ev := control.Resize{Number: j.Number, By: id.User, MilliCPU: int64(in.Body.CPUs) * 1000}
	if err := checkResources(in.Body); err != nil {
		return nil, err
	}
	if gb := in.Body.CPUMemoryGB; gb > 0 {
		if ev.MemMiB, err = s.withTmpfs(j, gb); err != nil {
			return nil, err
		}
	}
	o, err := loop.Do(ctx, s.Loop, ev)
	if err != nil {
		return nil, err
	}
	if o.Refusal != nil {
		return nil, wire.Refused(o.Refusal)
	}
	return &api.ResourcesResponse{Number: j.Number, Message: o.Message}, nil
}

// maxResource is far above any machine, and far below what overflows.
const maxResource = 1 << 20

func checkResources(q api.ResourcesRequest) error {
	if q.CPUs == 0 && q.CPUMemoryGB == 0 || min(q.CPUs, q.CPUMemoryGB) < 0 || max(q.CPUs, q.CPUMemoryGB) > maxResource {
		return api.Errorf(api.CodeBadRequest, "%d cores and %d GiB cannot be asked for", q.CPUs, q.CPUMemoryGB).
			WithHint("give cores, GiB of memory or both, each 1 or more")
	}
	return nil
}

// withTmpfs adds the job's tmpfs to its memory, as at its submission.
func (s *Actions) withTmpfs(j *state.Job, gb int) (memMiB int64, err error) {
	spec, err := s.Jobs.Document(j)
	if err != nil {
		return 0, err
	}
	spec.Request.Resources.CPUMemoryGB = gb
	return (spec.MemoryBytes() + 1<<20 - 1) >> 20, nil
}
