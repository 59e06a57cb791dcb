package rules

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"gbatch/internal/api"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/loop"
	"gbatch/internal/ctld/site"
	"gbatch/internal/ctld/wire"
	"gbatch/internal/state"
)

type projectsInput struct{}

// Projects lists the projects; to those who are not in one, without its members.
func (s *Rules) Projects(ctx context.Context, _ *projectsInput) (*api.ProjectList, error) {
	id := access.Caller(ctx)
	out := api.ProjectList{Projects: []api.Project{}}
	for _, p := range s.Now().Projects {
		a := site.ProjectToAPI(p)
		if !id.Operator() && !s.people.Among(p.Members, id.User) {
			if len(p.Members) > 0 {
				continue
			}
			a.GID = 0
		}
		out.Projects = append(out.Projects, a)
	}
	return &out, nil
}

// ProjectInput is a project to make or to change.
type ProjectInput struct {
	Name   string `path:"name"`
	Create bool   `query:"create" doc:"it must not be there yet; else it must"`
	Body   api.Project
}

// PutProject makes a project, or replaces one that was made so.
func (s *Rules) PutProject(ctx context.Context, in *ProjectInput) (*api.Project, error) {
	in.Body.Name = in.Name
	s.changing.Lock()
	defer s.changing.Unlock()
	old, known := s.Now().Project(in.Name)
	before := "new"
	switch {
	case known && in.Create:
		return nil, api.Errorf(api.CodeConflict, "there is a project %q already", in.Name).WithHint("`gadm project set` changes it")
	case known && !old.Stored:
		return nil, inFile(in.Name)
	case !known && !in.Create:
		return nil, noProject(in.Name)
	}
	p := site.ProjectFromAPI(in.Body)
	cfg := *s.Now()
	cfg.Projects = slices.Clone(cfg.Projects)
	if i := slices.IndexFunc(cfg.Projects, func(q site.Project) bool { return q.Name == p.Name }); i >= 0 {
		cfg.Projects[i] = p
	} else {
		cfg.Projects = append(cfg.Projects, p)
	}
	stored := site.ProjectToAPI(p)
	after := oneLine(stored)
	if known {
		before, after = difference(site.ProjectToAPI(old), stored)
	}
	n := loop.NoteOf(ctx).About("project "+p.Name, before+" -> "+after)
	record := state.Record{Kind: state.KindProject, Name: p.Name, Value: wire.Encode(stored)}
	if err := s.setRules(ctx, cfg, n, record); err != nil {
		return nil, refusedRules(err)
	}
	stored.Warnings = s.people.StrangersIn(p.People("project " + p.Name))
	return &stored, nil
}

type projectName struct {
	Name string `path:"name"`
}

// DropProject removes a project that gadm made.
func (s *Rules) DropProject(ctx context.Context, in *projectName) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	old, ok := s.Now().Project(in.Name)
	switch {
	case !ok:
		return noProject(in.Name)
	case !old.Stored:
		return inFile(in.Name)
	}
	cfg := *s.Now()
	cfg.Projects = slices.DeleteFunc(slices.Clone(cfg.Projects), func(p site.Project) bool { return p.Name == in.Name })
	n := loop.NoteOf(ctx).About("project "+in.Name, oneLine(site.ProjectToAPI(old))+" -> removed")
	if err := s.setRules(ctx, cfg, n, state.Record{Kind: state.KindProject, Name: in.Name}); err != nil {
		return refusedRules(err)
	}
	return nil
}

func oneLine(p api.Project) string {
	p.File = false
	return string(wire.Encode(p))
}

// difference is what two versions of a project do not have in common, each in a
// line: an entry of the audit log is cut off where it is long, and what was allowed
// must not be behind a list of members.
func difference(old, now api.Project) (before, after string) {
	var a, b map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal([]byte(oneLine(old)), &a), json.Unmarshal([]byte(oneLine(now)), &b)); err != nil {
		panic(err) // they were encoded just now
	}
	for key, value := range a {
		if key != "name" && bytes.Equal(value, b[key]) {
			delete(a, key)
			delete(b, key)
		}
	}
	return string(wire.Encode(a)), string(wire.Encode(b))
}

func noProject(name string) error {
	return api.Errorf(api.CodeNotFound, "there is no project %q", name).WithHint("`gadm project add` makes one")
}

func inFile(name string) error {
	return api.Errorf(api.CodeConflict, "project %q is in the controller's configuration file", name).
		WithHint("change it there, then `gadm policy reload`")
}

// refusedRules passes on what is the caller's to know: rules that do not hold,
// and not that the controller is in trouble.
func refusedRules(err error) error {
	var e *api.Error
	if errors.As(err, &e) {
		return e
	}
	return badRules(err)
}
