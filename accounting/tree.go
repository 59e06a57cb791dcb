package accounting

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Account is a node of the share tree: a project, or a group of them.
type Account struct {
	Parent string           `json:"parent,omitempty"` // empty: the root
	Shares int64            `json:"shares"`           // among its siblings
	Users  map[string]int64 `json:"users,omitempty"`  // shares of its users; others have one
	Budget int64            `json:"budget,omitempty"` // billed GPU-minutes it may use, with everything below it; 0: no bound

	Monthly bool `json:"monthly,omitempty"` // the budget is for each calendar month (UTC), else in all
}

// defaultShares is what projects and users have that the tree does not name.
const defaultShares = 1

// Tree is the share tree: accounts by name. Projects that it does not name hang
// from the root with defaultShares, so the zero value treats all alike.
type Tree map[string]Account

const maxShares = 1_000_000_000

// validate reports every unknown parent, cycle and number out of range.
func (t Tree) validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for _, name := range slices.Sorted(maps.Keys(t)) {
		a := t[name]
		if name == "" {
			bad("an account has no name")
		}
		if a.Shares < 0 || a.Shares > maxShares {
			bad("account %q has %d shares: want 0..%d", name, a.Shares, maxShares)
		}
		if a.Budget < 0 || a.Budget > maxBudget {
			bad("account %q has a budget of %d GPU-minutes: want 0..%d", name, a.Budget, int64(maxBudget))
		}
		for _, user := range slices.Sorted(maps.Keys(a.Users)) {
			if n := a.Users[user]; n < 0 || n > maxShares {
				bad("account %q gives user %q %d shares: want 0..%d", name, user, n, maxShares)
			}
		}
		if _, ok := t[a.Parent]; !ok && a.Parent != "" {
			bad("account %q has the parent %q, which is not in the tree", name, a.Parent)
		}
		if loop := t.loop(name); loop != "" {
			bad("account %q is above itself: %s", name, loop)
		}
	}
	return errors.Join(errs...)
}

// loop is the way from name up to itself, empty when it reaches the root.
func (t Tree) loop(name string) string {
	way := name
	at := name
	for range len(t) {
		a, ok := t[at]
		if !ok || a.Parent == "" {
			return ""
		}
		at = a.Parent
		way += " -> " + at
		if at == name {
			return way
		}
	}
	return "" // a loop that name only leads into is told where it is
}
