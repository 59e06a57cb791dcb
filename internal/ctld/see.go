package ctld

import (
	"gbatch/internal/state"
)

// mayTouch says whether a job is the caller's to see, cancel, hold, release and
// enter: their own, and those of a project that names them as a member. A
// project that everyone may use has no members, and each sees their own jobs
// there. Others learn that a job is there, whose it is and what it holds.
func (s *Server) mayTouch(id identity, o *state.Owner) bool {
	if id.operator() {
		return true
	}
	if id.role != roleUser {
		return false
	}
	if id.user == o.User {
		return true
	}
	p, ok := s.cfg().project(o.Project)
	return ok && s.auth.people.among(p.Members, id.user)
}

// stranger says whether a project has members and the caller is none of them.
func (s *Server) stranger(id identity, project string) bool {
	p, ok := s.cfg().project(project)
	return ok && len(p.Members) > 0 && !s.auth.people.among(p.Members, id.user)
}
