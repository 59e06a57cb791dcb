package jobs

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"gbatch/internal/api"
	"gbatch/internal/control"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/loop"
	"gbatch/internal/ctld/wire"
)

// splitStep reads what people write for a step that srun started: 12.0, 12_3.0.
func splitStep(text string) (of string, number uint32, ok bool) {
	of, rest, ok := strings.Cut(text, ".")
	n, err := strconv.ParseUint(rest, 10, 32)
	return of, uint32(n), ok && err == nil && of != ""
}

// actOnSteps does what an action says of steps that it names. They can be
// cancelled, and nothing else.
func (s *Actions) actOnSteps(ctx context.Context, id access.Identity, in *actInput, out *api.ActionResponse) error {
	for i := range out.Results {
		r := &out.Results[i]
		of, number, ok := splitStep(r.ID)
		if !ok {
			continue
		}
		j, refusal := s.Loop.View().Find(of)
		switch {
		case refusal != nil:
			r.Error = wire.Refused(refusal)
			continue
		case !s.Rights.MayTouch(id, j.Owner):
			r.Error = api.Errorf(api.CodeDenied, "job %d belongs to %s", j.Number, j.Owner.User)
			continue
		case in.Action != "cancel":
			r.Error = api.Errorf(api.CodeConflict, "a step can be cancelled, and nothing else").WithHint("name the job alone")
			continue
		}
		if r.Number = j.Number; in.Body.Count {
			continue
		}
		result, err := loop.Do(ctx, s.Loop, control.CancelLaunch{Job: j.Number, Number: number, By: id.User})
		if refused := (*api.Error)(nil); errors.As(err, &refused) {
			r.Error = refused
			continue
		}
		if err != nil {
			return err
		}
		takeResult(r, result)
	}
	return nil
}
