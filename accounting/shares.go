package accounting

// Scale is the highest fair-share factor.
const Scale = 1_000_000

// Shares are the fair-share factors at one moment. It never changes.
type Shares struct {
	factors    map[key]int64
	newcomers  map[string]int64 // by project: of users that have no row yet
	overBudget map[string]Budget
}

type key struct{ project, user string }

// Budget is what an account may use in all and what it has used.
type Budget struct {
	Account     string // the one that is over its budget: the project or one above it
	UsedMinutes int64
	MaxMinutes  int64
}

// Factor is the fair-share factor of a user in a project: 1..Scale, the higher
// the sooner. Users and projects without usage stand before all others of the
// same place in the tree.
func (s *Shares) Factor(project, user string) int64 {
	if s == nil {
		return Scale
	}
	if f, ok := s.factors[key{project, user}]; ok {
		return f
	}
	if f, ok := s.newcomers[project]; ok {
		return f
	}
	return Scale
}

// OverBudget says whether the project has used up its budget or one above it.
func (s *Shares) OverBudget(project string) (Budget, bool) {
	if s == nil {
		return Budget{}, false
	}
	b, ok := s.overBudget[project]
	return b, ok
}
