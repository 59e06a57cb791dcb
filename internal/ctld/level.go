package ctld

import "gbatch/internal/api"

// Level is who may use a route at all, in words for the documentation. What of
// it they may see and touch, the handler asks: see rights.
type Level string

const (
	byAnyone        Level = "anyone" // who need not say who they are
	byUsers         Level = "users"  // operators and admins too
	byUsersAndNodes Level = "users, nodes"
	byOperators     Level = "operators" // and admins
	byAdmins        Level = "admins"
	byNodes         Level = "the node itself" // the handler asks which
	byJoiners       Level = "a token to join"
	byScrapers      Level = "operators, `metrics.scrapers`" // and those that metrics.scrapers names
)

// admits says whether a caller may use a route with this access.
func (l Level) admits(id Identity) bool {
	person := id.role == roleUser || id.operator()
	switch l {
	case byAnyone:
		return true
	case byUsers:
		return person
	case byUsersAndNodes:
		return person || id.role == roleNode
	case byOperators:
		return id.operator()
	case byAdmins:
		return id.admin()
	case byNodes:
		return id.role == roleNode || id.root
	case byJoiners:
		return id.role == roleJoin
	case byScrapers:
		return id.operator() || person && id.scraper
	}
	return false
}

// refusal is what those are told whom a route does not admit.
func (l Level) refusal(id Identity) *api.Error {
	switch {
	case id.role == roleJoin:
		return denied("a token to join can join a node, and nothing else", "get one for a user by `gadm token create`")
	case l == byJoiners:
		return denied("to join a node needs a token that was made for it", "get one by `gadm node-token create`, and name it as joinTokenFile in gnoded.yaml")
	case l == byNodes:
		return denied("only a node may do this", "")
	case id.role == roleNode:
		return denied("a node may not do this", "use a token of your own, or the controller's socket")
	case l == byScrapers:
		return denied("metrics name everyone's projects and usage: they are for operators, and for whom `metrics.scrapers` in the controller's configuration names", "")
	case l == byAdmins:
		return denied("only an admin may do this", "admins are root on the controller's machine and those that `admins` in its configuration names")
	}
	return denied("only an operator may do this", "operators are those that `operators` and `admins` in the controller's configuration name, and root on its machine")
}
