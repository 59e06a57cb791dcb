package access

import "gbatch/internal/api"

// Level is who may use a route at all, in words for the documentation. What of
// it they may see and touch, the handler asks: see rights.
type Level string

const (
	ByAnyone        Level = "anyone" // who need not say who they are
	ByUsers         Level = "users"  // operators and admins too
	ByUsersAndNodes Level = "users, nodes"
	ByOperators     Level = "operators" // and admins
	ByAdmins        Level = "admins"
	ByNodes         Level = "the node itself" // the handler asks which
	ByJoiners       Level = "a token to join"
	ByLogins        Level = "users, by a token or a link of `gadm web`"
	ByScrapers      Level = "operators, `metrics.scrapers`" // and those that metrics.scrapers names
)

// Admits says whether a caller may use a route with this access.
func (l Level) Admits(id Identity) bool {
	person := id.Role == RoleUser || id.Operator()
	switch l {
	case ByAnyone:
		return true
	case ByUsers:
		return person
	case ByUsersAndNodes:
		return person || id.Role == RoleNode
	case ByOperators:
		return id.Operator()
	case ByAdmins:
		return id.admin()
	case ByNodes:
		return id.Role == RoleNode || id.Root
	case ByJoiners:
		return id.Role == RoleJoin
	case ByLogins:
		return person || id.Role == RoleLogin
	case ByScrapers:
		return id.Operator() || person && id.scraper
	}
	return false
}

// Refusal is what those are told whom a route does not admit.
func (l Level) Refusal(id Identity) *api.Error {
	switch {
	case id.Role == RoleJoin:
		return api.Errorf(api.CodeDenied, "a token to join can join a node, and nothing else").WithHint("get one for a user by `gadm token create`")
	case id.Role == RoleLogin:
		return api.Errorf(api.CodeDenied, "a link of `gadm web` opens the web page, and nothing else").WithHint("get a token by `gadm token create`")
	case l == ByJoiners:
		return api.Errorf(api.CodeDenied, "to join a node needs a token that was made for it").
			WithHint("get one by `gadm node-token create`, and name it as joinTokenFile in gnoded.yaml")
	case l == ByNodes:
		return api.Errorf(api.CodeDenied, "only a node may do this")
	case id.Role == RoleNode:
		return api.Errorf(api.CodeDenied, "a node may not do this").WithHint("use a token of your own, or the controller's socket")
	case l == ByScrapers:
		return api.Errorf(api.CodeDenied, "metrics name everyone's projects and usage: they are for operators, and for whom `metrics.scrapers` in the controller's configuration names")
	case l == ByAdmins:
		return api.Errorf(api.CodeDenied, "only an admin may do this").
			WithHint("admins are root on the controller's machine and those that `admins` in its configuration names")
	}
	return api.Errorf(api.CodeDenied, "only an operator may do this").
		WithHint("operators are those that `operators` and `admins` in the controller's configuration name, and root on its machine")
}
