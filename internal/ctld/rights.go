package ctld

import (
	"gbatch/internal/ctld/site"
	"gbatch/internal/state"
)

// Rights says who may do what, by the rules in force at each question.
type Rights struct {
	conf   func() *site.Config
	people *People
}

// mayTouch says whether a job is the caller's to see, cancel, hold, release and
// enter: their own, and those of a project that names them as a member. A
// project that everyone may use has no members, and each sees their own jobs
// there. Others learn that a job is there, whose it is and what it holds.
func (r *Rights) mayTouch(id Identity, o *state.Owner) bool {
	if id.operator() {
		return true
	}
	if id.role != roleUser {
		return false
	}
	if id.user == o.User {
		return true
	}
	p, ok := r.conf().Project(o.Project)
	return ok && r.people.among(p.Members, id.user)
}

// private is the contrary, for what is shown.
func (r *Rights) private(id Identity, o *state.Owner) bool { return !r.mayTouch(id, o) }

// stranger says whether a project has members and the caller is none of them.
func (r *Rights) stranger(id Identity, project string) bool {
	p, ok := r.conf().Project(project)
	return ok && len(p.Members) > 0 && !r.people.among(p.Members, id.user)
}

// roleOf is what the rules make of a user. Root is an admin on the controller's
// own machine; elsewhere it is a user like others, unless the rules name it.
func (r *Rights) roleOf(id Identity) role {
	c := r.conf()
	switch {
	case id.root || r.people.among(c.Admins, id.user):
		return roleAdmin
	case r.people.among(c.Operators, id.user):
		return roleOperator
	}
	return roleUser
}

// seesProject says whether the caller may see a project's own figures: those of
// theirs, and of one that everyone may use.
func (r *Rights) seesProject(id Identity, project string) bool {
	_, ok := r.conf().Project(project)
	return id.operator() || ok && !r.stranger(id, project)
}
