package control

import (
	"fmt"
	"slices"
	"time"

	"gbatch/internal/state"
)

// Unreserve removes a reservation, or the next of its times.
type Unreserve struct {
	Name string
	Once bool                             // only the time that is, or comes next
	Zone func(name string) *time.Location // as in Tick
}

func (e Unreserve) apply(s *step) (none, *state.Refusal) {
	i := slices.IndexFunc(s.queue.windows, func(w state.Window) bool { return w.Name == e.Name })
	if e.Once && i >= 0 {
		if s.queue.windows[i].Every == nil {
			return none{}, &state.Refusal{Code: state.Conflict, Message: fmt.Sprintf("reservation %q comes once", e.Name), Hint: "remove it whole: gadm unreserve"}
		}
		Tick{Zone: e.Zone}.over(s, s.queue.windows[i])
		return none{}, nil
	}
	if !s.queue.unreserve(e.Name) {
		return none{}, &state.Refusal{Code: state.NotFound, Message: fmt.Sprintf("there is no reservation %q", e.Name)}
	}
	return none{}, nil
}

func (e Unreserve) audit(none) Audit {
	what := "removed"
	if e.Once {
		what = "skipped one time"
	}
	return Audit{Object: "reservation " + e.Name, Change: what}
}
