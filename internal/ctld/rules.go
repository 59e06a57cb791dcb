package ctld

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"gbatch/internal/api"
	"gbatch/internal/control"
	"gbatch/internal/state"
)

// The rules: who may do what, projects, limits and policy. They come from the
// configuration file, and projects that gadm made from the store. They change
// while the controller runs, all at once or not at all.

// Rules is the configuration as the controller takes it, for those who run one
// on their own, such as the simulator.
func (c Config) Rules() (control.Config, error) { return c.control() }

// with adds the projects that gadm made.
func (c Config) with(made []Project) (Config, error) {
	c.Projects = slices.Clone(c.Projects)
	for _, p := range made {
		if _, ok := c.project(p.Name); ok {
			return c, fmt.Errorf("project %s is in the file, and was made by gadm too: take it out of the file, or first `gadm project remove %s`", p.Name, p.Name)
		}
		c.Projects = append(c.Projects, p)
	}
	return c, nil
}

// loadProjects reads the projects that gadm made.
func (s *Server) loadProjects() error {
	var made []Project
	err := s.store.All(state.KindProject, func(r state.Record) error {
		var p api.Project
		if err := json.Unmarshal(r.Value, &p); err != nil {
			return fmt.Errorf("decode project record %s: %w", r.Name, err)
		}
		if _, ok := s.cfg().project(p.Name); ok {
			s.log.Warn("a project that gadm made is in the configuration file now, which wins", "project", p.Name)
			return nil
		}
		made = append(made, projectOf(p))
		return nil
	})
	if err != nil {
		return err
	}
	cfg, err := s.cfg().with(made)
	if err != nil {
		return err
	}
	s.conf.Store(&cfg)
	return nil
}

func (c Config) made() []Project {
	return slices.DeleteFunc(slices.Clone(c.Projects), func(p Project) bool { return !p.made })
}

// setRules puts a configuration into force, with records that go with it; n is
// for the audit log. The caller holds s.ruling.
func (s *Server) setRules(ctx context.Context, cfg Config, n *note, records ...state.Record) error {
	if err := s.checkRules(cfg); err != nil {
		return err
	}
	cc, err := cfg.control()
	if err != nil {
		return err
	}
	if _, err := settle(ctx, s.loop, control.Reconfigure{Config: cc}, request{records: records, note: n}); err != nil {
		return err
	}
	s.conf.Store(&cfg)
	return nil
}

// checkRules says why a configuration cannot come into force now.
func (s *Server) checkRules(cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	old := s.cfg()
	if cfg.Dir != old.Dir || cfg.SocketPath() != old.SocketPath() || cfg.Listen != old.Listen {
		return fmt.Errorf("dir, socket and listen cannot change while gctld runs: restart it")
	}
	live := map[string]int{}
	for j := range s.loop.view.Load().All() {
		if !j.State.Final() {
			live[j.Owner.Project]++
		}
	}
	for _, p := range old.Projects {
		if _, ok := cfg.project(p.Name); !ok && live[p.Name] > 0 {
			return fmt.Errorf("project %s has %d jobs that wait or run: it can be removed when they have ended", p.Name, live[p.Name])
		}
	}
	return nil
}

// ReloadOn reads the configuration again at each signal, until ctx is done. An
// error leaves the old rules in force.
func (s *Server) ReloadOn(ctx context.Context, sig <-chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-sig:
		}
		if err := s.Reload(context.WithValue(ctx, identityKey{}, identity{user: "root", role: roleAdmin, from: "signal", via: "signal", root: true})); err != nil {
			s.log.Error("configuration not reloaded: the old rules stay in force", "err", err)
		}
	}
}

// Reload takes the configuration's rules as they are in the file now: projects,
// roles, limits and policy, all or none. What was fixed at the start is an error
// if it differs.
func (s *Server) Reload(ctx context.Context) error {
	s.ruling.Lock()
	defer s.ruling.Unlock()
	cfg, err := s.read()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	n := noteOf(ctx)
	n.Object, n.Change = "rules", strings.Join(changedLines(s.cfg().text(), cfg.text()), "; ")
	if err := s.setRules(ctx, cfg, n); err != nil {
		return err
	}
	s.log.Info("rules reloaded", "projects", len(cfg.Projects))
	return nil
}

// read gets the file as it is now, with what gadm made.
func (s *Server) read() (Config, error) {
	cfg, err := s.source()
	if err != nil {
		return cfg, err
	}
	return cfg.with(s.cfg().made())
}

type policyInput struct{}

func (s *Server) policy(context.Context, *policyInput) (*body[api.Policy], error) {
	return &body[api.Policy]{api.Policy{Text: s.cfg().text()}}, nil
}

// checkPolicy says what a reload would do.
func (s *Server) checkPolicy(context.Context, *policyInput) (*body[api.Policy], error) {
	cfg, err := s.read()
	if err == nil {
		err = s.checkRules(cfg)
	}
	if err != nil {
		return nil, badRules(err)
	}
	return &body[api.Policy]{api.Policy{Text: cfg.text(), Changes: changedLines(s.cfg().text(), cfg.text())}}, nil
}

func (s *Server) reloadPolicy(ctx context.Context, _ *policyInput) (*body[api.Policy], error) {
	before := s.cfg().text()
	if err := s.Reload(ctx); err != nil {
		return nil, badRules(err)
	}
	after := s.cfg().text()
	return &body[api.Policy]{api.Policy{Text: after, Changes: changedLines(before, after)}}, nil
}

// badRules is the answer to an admin, who may read the file.
func badRules(err error) *api.Error {
	return &api.Error{Status: 422, Code: api.CodeBadRequest, Message: err.Error(), Hint: "the old rules stay in force"}
}

// text is the rules as a person writes them. No secret is in them.
func (c Config) text() string {
	b, err := yaml.Marshal(c)
	if err != nil {
		panic(err) // values of our own types always encode
	}
	return string(b)
}

// changedLines is what one text has more than the other, by line.
func changedLines(before, after string) []string {
	count := map[string]int{}
	for line := range strings.Lines(after) {
		count[line]++
	}
	var out []string
	for line := range strings.Lines(before) {
		if count[line]--; count[line] < 0 {
			out = append(out, "- "+strings.TrimRight(line, "\n"))
		}
	}
	for line := range strings.Lines(after) {
		if count[line] > 0 {
			count[line]--
			out = append(out, "+ "+strings.TrimRight(line, "\n"))
		}
	}
	return out
}
