// Package whatif answers who would wait for how long by other rules, or with more
// nodes: a simulation lives on from the controller's records, beside the controller.
package whatif

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/control"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/places"
	"gbatch/internal/ctld/wire"
	"gbatch/internal/sim/outlook"
	"gbatch/internal/state"
	"gbatch/sched"
)

// A simulation takes a processor and the memory of two controllers. One is made at a
// time, and few wait; it may read for so long, and then look ahead for so long. When its
// turn has come, the answer is there in so long in all: see pace.
const (
	waiting = 4
	reading = 10 * time.Second
	looking = 10 * time.Second
	inAll   = 20 * time.Second
)

// most is how many users and jobs an answer names.
const most = 100

// Site is what the simulation begins with.
type Site struct {
	Rules, Next func() (control.Config, error) // in force; as the file has them now
	View        func() *state.View
	Load        func(take func(state.Record) error) error // the records, of one moment
	Now         func() time.Time
}

// Handlers answer questions.
type Handlers struct {
	site Site
	gate *places.Gate
}

// New makes them.
func New(site Site) *Handlers { return &Handlers{site: site, gate: places.NewGate(1, waiting)} }

type input struct{ Body api.WhatIfRequest }

// Ask answers a question. It changes nothing, and does not hold up the controller.
func (h *Handlers) Ask(ctx context.Context, in *input) (*api.WhatIf, error) {
	leave, ok := h.gate.Enter(ctx, access.Caller(ctx).User)
	if !ok {
		return nil, api.Errorf(api.CodeUnavailable, "others ask what would be now").WithHint("try again")
	}
	defer leave()
	q := outlook.Question{Set: in.Body.Set, Add: in.Body.AddNodes}
	var err error
	if q.Rules, err = h.site.Rules(); err != nil {
		return nil, err
	}
	if in.Body.File {
		next, err := h.site.Next()
		if err != nil {
			return nil, err
		}
		q.Changed = &next
	}
	if err := q.Check(); err != nil {
		return nil, api.Errorf(api.CodeBadRequest, "%v", err)
	}
	v := h.site.View()
	q.Silent = func(name string) bool { n := v.Node(name); return n != nil && n.Lost }
	q.Records = h.records(ctx)
	q.Now = max(v.Now, sched.Time(h.site.Now().UnixMilli()))
	p := &pace{ctx: ctx, now: h.site.Now, end: h.site.Now().Add(inAll)}
	q.Part, q.More = p.part, p.more
	a, err := outlook.Ask(q)
	if err != nil {
		return nil, refused(err)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if !a.Whole && a.Until <= q.Now { // nothing is known of one of the two
		return nil, refused(errSlow)
	}
	return answer(q.Now, a), nil
}

// records are those of the store, as long as there is time to read them.
func (h *Handlers) records(ctx context.Context) func(take func(state.Record) error) error {
	end, n := h.site.Now().Add(reading), 0
	return func(take func(state.Record) error) error {
		return h.site.Load(func(r state.Record) error {
			if n++; n%1024 == 0 && (ctx.Err() != nil || h.site.Now().After(end)) {
				return errSlow
			}
			return take(r)
		})
	}
}

var errSlow = errors.New("it takes too long")

// refused is what the caller can do about it.
func refused(err error) error {
	var cannot *outlook.RefusedError
	switch {
	case errors.Is(err, errSlow):
		return api.Errorf(api.CodeUnavailable, "there are too many jobs to look ahead in %s just now", inAll).
			WithHint("`gctld sim --from-store` on the controller's machine has no such bound")
	case errors.As(err, &cannot):
		return api.Errorf(api.CodeBadRequest, "%v", err)
	}
	return err
}

// answer is the simulation's, added up.
func answer(now sched.Time, a outlook.Answer) *api.WhatIf {
	out := &api.WhatIf{Now: wire.Time(now), Until: wire.Time(a.Until), Whole: a.Whole, Users: []api.WhatIfWaits{}, Jobs: []api.WhatIfJob{}}
	all := sum{until: a.Until, now: now}
	users := map[string]*sum{}
	for _, j := range a.Jobs {
		u := users[j.User]
		if u == nil {
			u = &sum{until: a.Until, now: now}
			u.User = j.User
			users[j.User] = u
		}
		all.add(j)
		u.add(j)
	}
	out.All = all.mean()
	for _, u := range users {
		out.Users = append(out.Users, u.mean())
	}
	slices.SortFunc(out.Users, func(x, y api.WhatIfWaits) int {
		return cmp.Or(cmp.Compare(y.Jobs, x.Jobs), strings.Compare(x.User, y.User))
	})
	out.Users = out.Users[:min(len(out.Users), most)]
	moved := slices.DeleteFunc(slices.Clone(a.Jobs), func(j outlook.Job) bool { return all.shift(j) == 0 })
	slices.SortStableFunc(moved, func(x, y outlook.Job) int {
		a, b := all.shift(x), all.shift(y)
		return cmp.Compare(max(b, -b), max(a, -a))
	})
	for _, j := range moved[:min(len(moved), most)] {
		out.Jobs = append(out.Jobs, api.WhatIfJob{ID: j.ID, Name: j.Name, User: j.User, Project: j.Project, Before: moment(j.Before), After: moment(j.After)})
	}
	return out
}

func moment(t sched.Time) *time.Time {
	if t == 0 {
		return nil
	}
	at := wire.Time(t)
	return &at
}

// sum adds up waits.
type sum struct {
	api.WhatIfWaits
	now, until    sched.Time
	before, after sched.Time
	counted       sched.Time // jobs that start, one way or the other
}

// shift is by how much later a job starts.
func (s *sum) shift(j outlook.Job) sched.Time { return s.wait(j.After) - s.wait(j.Before) }

func (s *sum) wait(start sched.Time) sched.Time {
	if start == 0 {
		start = s.until
	}
	return max(start-s.now, 0)
}

func (s *sum) add(j outlook.Job) {
	s.Jobs++
	if j.Before > 0 {
		s.StartedBefore++
	}
	if j.After > 0 {
		s.StartedAfter++
	}
	if j.Before > 0 || j.After > 0 {
		s.counted++
		s.before += s.wait(j.Before) / 1000
		s.after += s.wait(j.After) / 1000
	}
	switch d := s.shift(j); {
	case d <= -sched.Minute:
		s.Sooner++
	case d >= sched.Minute:
		s.Later++
	}
}

func (s *sum) mean() api.WhatIfWaits {
	out := s.WhatIfWaits
	if n := s.counted; n > 0 {
		out.WaitBeforeS, out.WaitAfterS = int64(s.before/n), int64(s.after/n)
	}
	return out
}
