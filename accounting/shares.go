package accounting

import "cmp"

// Scale is the highest fair-share factor.
const Scale = 1_000_000

// Shares are the fair-share factors at one moment. It never changes.
type Shares struct {
	claims    map[key]Claim
	newcomers map[string]Claim  // by project: of users that have no row yet
	budgets   map[string]Budget // by project: the tightest that binds it
}

type key struct{ project, user string }

func byKey(a, b key) int {
	return cmp.Or(cmp.Compare(a.project, b.project), cmp.Compare(a.user, b.user))
}

// Budget is what an account may use, in all or in a calendar month (UTC), and
// what it has used, in GPU-minutes as billed.
type Budget struct {
	Account     string // the project or one above it
	UsedMinutes int64
	MaxMinutes  int64
	Monthly     bool
}

// Percent is how much of it is used.
func (b Budget) Percent() int64 { return times(b.UsedMinutes, 100) / max(b.MaxMinutes, 1) }

// Claim is what a user of a project can claim at one moment.
type Claim struct {
	Factor int64 // see Shares.Factor
	Part   int64 // of everything, by shares alone, in Scale parts; at least 1
	Began  int64 // when an attempt of theirs began last
	Until  int64 // see Ledger.Defer
}

// Claim is that of a user in a project.
func (s *Shares) Claim(project, user string) Claim {
	if s != nil {
		if c, ok := s.claims[key{project, user}]; ok {
			return c
		}
		if c, ok := s.newcomers[project]; ok {
			return c
		}
	}
	return Claim{Factor: Scale, Part: 1}
}

// Factor is the fair-share factor of a user in a project: 1..Scale, the higher
// the sooner. Users and projects without usage stand before all others of the
// same place in the tree.
func (s *Shares) Factor(project, user string) int64 { return s.Claim(project, user).Factor }

// Budget is the one that binds a project most: its own or one above it.
func (s *Shares) Budget(project string) (Budget, bool) {
	if s == nil {
		return Budget{}, false
	}
	b, ok := s.budgets[project]
	return b, ok
}

// OverBudget says whether the project has used up its budget or one above it.
func (s *Shares) OverBudget(project string) (Budget, bool) {
	b, ok := s.Budget(project)
	return b, ok && b.UsedMinutes >= b.MaxMinutes
}
