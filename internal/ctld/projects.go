package ctld

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gbatch/internal/api"
	"gbatch/internal/state"
)

func projectOf(p api.Project) Project {
	l := p.Limits
	return Project{
		Name: p.Name, GID: p.GID, Members: slices.Concat(users(p.Members...), groups(p.Groups...)), Shares: p.Shares, Clusters: p.Clusters,
		Limits: JobLimits{Running: l.Running, Queued: l.Queued, GPUs: l.GPUs, GPUMinutes: l.GPUMinutes},
		Parent: p.Parent, UserShares: p.UserShares, Budget: p.Budget, BudgetPeriod: p.BudgetPeriod, Privileged: p.Privileged, made: true,
	}
}

func projectToAPI(p Project) api.Project {
	l := p.Limits
	out := api.Project{
		Name: p.Name, GID: p.GID, Shares: p.Shares, Clusters: p.Clusters,
		Limits: api.ProjectLimits{Running: l.Running, Queued: l.Queued, GPUs: l.GPUs, GPUMinutes: l.GPUMinutes},
		Parent: p.Parent, UserShares: p.UserShares, Budget: p.Budget, BudgetPeriod: p.BudgetPeriod, Privileged: p.Privileged, File: !p.made,
	}
	out.Members, out.Groups = p.Members.split()
	return out
}

type projectsInput struct{}

// projects lists the projects; to those who are not in one, without its members.
func (s *Server) projects(ctx context.Context, _ *projectsInput) (*body[api.ProjectList], error) {
	id := caller(ctx)
	out := api.ProjectList{Projects: []api.Project{}}
	for _, p := range s.cfg().Projects {
		a := projectToAPI(p)
		if !id.operator() && !s.auth.people.among(p.Members, id.user) {
			if len(p.Members) > 0 {
				continue
			}
			a.GID = 0
		}
		out.Projects = append(out.Projects, a)
	}
	return &body[api.ProjectList]{out}, nil
}

type projectInput struct {
	Name   string `path:"name"`
	Create bool   `query:"create" doc:"it must not be there yet; else it must"`
	Body   api.Project
}

// putProject makes a project, or replaces one that was made so.
func (s *Server) putProject(ctx context.Context, in *projectInput) (*body[api.Project], error) {
	in.Body.Name = in.Name
	s.ruling.Lock()
	defer s.ruling.Unlock()
	old, known := s.cfg().project(in.Name)
	before := "new"
	if known {
		before = oneLine(projectToAPI(old))
	}
	switch {
	case known && in.Create:
		return nil, &api.Error{Status: 409, Code: api.CodeConflict, Message: fmt.Sprintf("there is a project %q already", in.Name), Hint: "`gadm project set` changes it"}
	case known && !old.made:
		return nil, inFile(in.Name)
	case !known && !in.Create:
		return nil, noProject(in.Name)
	}
	p := projectOf(in.Body)
	cfg := *s.cfg()
	cfg.Projects = slices.Clone(cfg.Projects)
	if i := slices.IndexFunc(cfg.Projects, func(q Project) bool { return q.Name == p.Name }); i >= 0 {
		cfg.Projects[i] = p
	} else {
		cfg.Projects = append(cfg.Projects, p)
	}
	stored := projectToAPI(p)
	n := noteOf(ctx)
	n.Object, n.Change = "project "+p.Name, before+" -> "+oneLine(stored)
	record := state.Record{Kind: state.KindProject, Name: p.Name, Value: encode(stored)}
	if err := s.setRules(ctx, cfg, n, record); err != nil {
		return nil, s.refusedRules(err)
	}
	return &body[api.Project]{stored}, nil
}

type projectName struct {
	Name string `path:"name"`
}

// dropProject removes a project that gadm made.
func (s *Server) dropProject(ctx context.Context, in *projectName) (*nothing, error) {
	s.ruling.Lock()
	defer s.ruling.Unlock()
	old, ok := s.cfg().project(in.Name)
	switch {
	case !ok:
		return nil, noProject(in.Name)
	case !old.made:
		return nil, inFile(in.Name)
	}
	cfg := *s.cfg()
	cfg.Projects = slices.DeleteFunc(slices.Clone(cfg.Projects), func(p Project) bool { return p.Name == in.Name })
	n := noteOf(ctx)
	n.Object, n.Change = "project "+in.Name, oneLine(projectToAPI(old))+" -> removed"
	if err := s.setRules(ctx, cfg, n, state.Record{Kind: state.KindProject, Name: in.Name}); err != nil {
		return nil, s.refusedRules(err)
	}
	return nil, nil
}

func oneLine(p api.Project) string {
	p.File = false
	return string(encode(p))
}

func noProject(name string) error {
	return &api.Error{Status: 404, Code: api.CodeNotFound, Message: fmt.Sprintf("there is no project %q", name), Hint: "`gadm project add` makes one"}
}

func inFile(name string) error {
	return &api.Error{Status: 409, Code: api.CodeConflict, Message: fmt.Sprintf("project %q is in the controller's configuration file", name),
		Hint: "change it there, then `gadm policy reload`"}
}

// refusedRules passes on what is the caller's to know: rules that do not hold,
// and not that the controller is in trouble.
func (s *Server) refusedRules(err error) error {
	var e *api.Error
	if errors.As(err, &e) {
		return e
	}
	return badRules(err)
}
