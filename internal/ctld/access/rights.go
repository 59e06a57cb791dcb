package access

import (
	"slices"

	"gbatch/internal/ctld/site"
	"gbatch/internal/state"
)

// Rights says who may do what, by the rules in force at each question.
type Rights struct {
	Conf   func() *site.Config
	People *People
}

// MayTouch says whether a job is the caller's to see, cancel, hold, release and
// enter: their own, and those of a project that names them as a member. A
// project that everyone may use has no members, and each sees their own jobs
// there. Others learn that a job is there, whose it is and what it holds.
func (r *Rights) MayTouch(id Identity, o *state.Owner) bool {
	if id.Operator() {
		return true
	}
	if id.Role != RoleUser {
		return false
	}
	if id.User == o.User {
		return true
	}
	p, ok := r.Conf().Project(o.Project)
	return ok && r.People.Among(p.Members, id.User)
}

// KnowsUser says whether the site has heard of a user: by an account of the machine's or
// its directory service's, a token or the rules. Where the service does not answer, it may
// have.
func (r *Rights) KnowsUser(keys *Keyring, name string) bool {
	if keys.hasUser(name) {
		return true
	}
	for _, list := range r.Conf().People() {
		if slices.Contains(list.Users, name) {
			return true
		}
	}
	uid, err := r.People.Account(name)
	return err != nil || uid != nil
}

// Private is the contrary of MayTouch, for what is shown.
func (r *Rights) Private(id Identity, o *state.Owner) bool { return !r.MayTouch(id, o) }

// Stranger says whether a project has members and the caller is none of them.
func (r *Rights) Stranger(id Identity, project string) bool {
	p, ok := r.Conf().Project(project)
	return ok && len(p.Members) > 0 && !r.People.Among(p.Members, id.User)
}

// Closed are the partitions that are not for the caller, by their users.
func (r *Rights) Closed(id Identity) (names []string) {
	for _, p := range r.Conf().Partitions {
		if len(p.Users) > 0 && !r.People.Among(p.Users, id.User) || r.People.Among(p.NotUsers, id.User) {
			names = append(names, p.Name)
		}
	}
	return names
}

// roleOf is what the rules make of a user. Root is an admin on the controller's
// own machine; elsewhere it is a user like others, unless the rules name it.
func (r *Rights) roleOf(id Identity) role {
	c := r.Conf()
	switch {
	case id.Root || r.People.Among(c.Admins, id.User):
		return RoleAdmin
	case r.People.Among(c.Operators, id.User):
		return roleOperator
	}
	return RoleUser
}

// SeesProject says whether the caller may see a project's own figures: those of
// theirs, and of one that everyone may use.
func (r *Rights) SeesProject(id Identity, project string) bool {
	_, ok := r.Conf().Project(project)
	return id.Operator() || ok && !r.Stranger(id, project)
}
