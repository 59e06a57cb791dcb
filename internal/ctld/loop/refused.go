package loop

import (
	"cmp"
	"slices"
	"sync"

	"gbatch/internal/api"
	"gbatch/sched"
)

// Bounds of what is noted of refusals in each period, so that nobody fills the log,
// or drives other entries out of it, by asking for what they may not have.
const (
	refusedEvery = sched.Minute // how long repetitions are only counted
	maxRefused   = 60           // entries in all; further ones are one together
	maxRefusedOf = 10           // entries of one user; further ones are one together
)

// refusals are attempts that were refused and are not in the log yet. The first of
// its kind is written at once. What repeats it is counted, and written with its
// number when the period is over. Anyone may add to them, and nobody waits.
type refusals struct {
	mu    sync.Mutex
	kinds map[api.AuditEntry]*refusal // by what is the same in each repetition
	users map[string]int              // kinds of each user
	began sched.Time                  // of the period; 0: nothing was refused in it
}

type refusal struct {
	count   int
	written bool // in this period
}

// add notes an attempt. Of the entry, its sequence number, time and count are not
// set.
func (r *refusals) add(e api.AuditEntry) {
	e.Object, e.Change, e.Result, e.Action = shorten(e.Object), shorten(e.Change), shorten(e.Result), shorten(e.Action)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kinds == nil {
		r.kinds, r.users = map[api.AuditEntry]*refusal{}, map[string]int{}
	}
	kind := r.kinds[e]
	if kind == nil && r.users[e.User] >= maxRefusedOf {
		e = api.AuditEntry{User: e.User, Role: e.Role, Action: "further requests", Result: "denied"}
		kind = r.kinds[e]
	}
	if kind == nil && len(r.kinds) >= maxRefused {
		e = api.AuditEntry{Action: "further requests", Result: "denied"}
		kind = r.kinds[e]
	}
	if kind == nil {
		kind = &refusal{}
		r.kinds[e] = kind
		r.users[e.User]++
	}
	kind.count++
}

// due is what is to be written now: what is new, and at the period's end what was
// repeated in it. At the very end, last, nothing is kept back.
func (r *refusals) due(now sched.Time, last bool) (out []api.AuditEntry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.kinds) == 0 {
		return nil
	}
	if r.began == 0 {
		r.began = now
	}
	over := last || now >= r.began+refusedEvery
	for e, kind := range r.kinds {
		if kind.count > 0 && (over || !kind.written) {
			e.Count = kind.count
			out = append(out, e)
			kind.count, kind.written = 0, true
		}
	}
	if over {
		r.kinds, r.users, r.began = nil, nil, 0
	}
	slices.SortFunc(out, func(a, b api.AuditEntry) int {
		return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(a.Action, b.Action), cmp.Compare(a.From, b.From), cmp.Compare(a.Via, b.Via),
			cmp.Compare(a.Object, b.Object), cmp.Compare(a.Change, b.Change), cmp.Compare(a.Result, b.Result))
	})
	return out
}
