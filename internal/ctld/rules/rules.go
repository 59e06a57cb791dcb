package rules

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/control"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/loop"
	"gbatch/internal/ctld/site"
	"gbatch/internal/state"
	"gbatch/internal/store"
)

// The rules: who may do what, projects, limits and policy. They come from the
// configuration file, and projects that gadm made from the store. They change
// while the controller runs, all at once or not at all.

// Rules is the configuration in force. It owns it: others read it by Now, and see
// the next one at their next question.
type Rules struct {
	Loop *loop.Loop // set before the rules change

	people *access.People
	log    *slog.Logger
	source func() (site.Config, error) // the configuration file as it is now

	changing sync.Mutex // held while they change
	current  atomic.Pointer[site.Config]
}

// New is rules that begin with a configuration; source reads its file anew.
func New(cfg site.Config, source func() (site.Config, error), people *access.People, log *slog.Logger) *Rules {
	r := &Rules{people: people, log: log, source: source}
	r.current.Store(&cfg)
	return r
}

// Now is the configuration in force.
func (s *Rules) Now() *site.Config { return s.current.Load() }

// LoadProjects reads the projects that gadm made.
func (s *Rules) LoadProjects(st *store.Store) error {
	var made []site.Project
	err := st.All(state.KindProject, func(r state.Record) error {
		var p api.Project
		if err := json.Unmarshal(r.Value, &p); err != nil {
			return fmt.Errorf("decode project record %s: %w", r.Name, err)
		}
		if _, ok := s.Now().Project(p.Name); ok {
			s.log.Warn("a project that gadm made is in the configuration file now, which wins", "project", p.Name)
			return nil
		}
		made = append(made, site.ProjectFromAPI(p))
		return nil
	})
	if err != nil {
		return err
	}
	cfg, err := s.Now().WithStored(made)
	if err != nil {
		return err
	}
	s.current.Store(&cfg)
	return nil
}

// setRules puts a configuration into force, with records that go with it; n is
// for the audit log. The caller holds s.changing.
func (s *Rules) setRules(ctx context.Context, cfg site.Config, n *loop.Note, records ...state.Record) error {
	if err := s.checkRules(cfg); err != nil {
		return err
	}
	cc, err := cfg.Rules()
	if err != nil {
		return err
	}
	if err := loop.DoToEndAs(ctx, s.Loop, control.Reconfigure{Config: cc}, n, records...); err != nil {
		return err
	}
	s.current.Store(&cfg)
	return nil
}

// checkRules says why a configuration cannot come into force now.
func (s *Rules) checkRules(cfg site.Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	old := s.Now()
	if cfg.Dir != old.Dir || cfg.SocketPath() != old.SocketPath() || cfg.Listen != old.Listen {
		return fmt.Errorf("dir, socket and listen cannot change while gctld runs: restart it")
	}
	live := map[string]int{}
	for j := range s.Loop.View().Live() {
		live[j.Owner.Project]++
	}
	for _, p := range old.Projects {
		if _, ok := cfg.Project(p.Name); !ok && live[p.Name] > 0 {
			return fmt.Errorf("project %s has %d jobs that wait or run: it can be removed when they have ended", p.Name, live[p.Name])
		}
	}
	return nil
}

// ReloadOn reads the configuration again at each signal, until ctx is done. An
// error leaves the old rules in force.
func (s *Rules) ReloadOn(ctx context.Context, sig <-chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-sig:
		}
		if err := s.Reload(access.WithCaller(ctx, access.Identity{User: "root", Role: access.RoleAdmin, From: "signal", Via: "signal", Root: true}, "")); err != nil {
			s.log.Error("configuration not reloaded: the old rules stay in force", "error", err)
		}
	}
}

// Reload takes the configuration's rules as they are in the file now: projects,
// roles, limits and policy, all or none. What was fixed at the start is an error
// if it differs.
func (s *Rules) Reload(ctx context.Context) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	cfg, err := s.read()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	n := loop.NoteOf(ctx).About("rules", strings.Join(site.Diff(s.Now().Text(), cfg.Text()), "; "))
	if err := s.setRules(ctx, cfg, n); err != nil {
		return err
	}
	s.log.Info("rules reloaded", "projects", len(cfg.Projects))
	s.LogStrangers()
	return nil
}

// LogStrangers writes into the log whom the rules name that this machine does not
// know. It may wait for a directory service.
func (s *Rules) LogStrangers() {
	for _, text := range s.people.Strangers(*s.Now()) {
		s.log.Warn("the configuration names somebody unknown", "where", text)
	}
}

// read gets the file as it is now, with what gadm made.
func (s *Rules) read() (site.Config, error) {
	cfg, err := s.source()
	if err != nil {
		return cfg, err
	}
	return cfg.WithStored(s.Now().StoredProjects())
}

// Next is what the controller would go by if it read the file now.
func (s *Rules) Next() (control.Config, error) {
	cfg, err := s.read()
	if err == nil {
		err = s.checkRules(cfg)
	}
	if err != nil {
		return control.Config{}, badRules(err)
	}
	return cfg.Rules()
}

type policyInput struct{}

// Policy shows the rules in force.
func (s *Rules) Policy(context.Context, *policyInput) (*api.Policy, error) {
	return &api.Policy{Text: s.Now().Text()}, nil
}

// CheckPolicy says what a reload would do.
func (s *Rules) CheckPolicy(context.Context, *policyInput) (*api.Policy, error) {
	cfg, err := s.read()
	if err == nil {
		err = s.checkRules(cfg)
	}
	if err != nil {
		return nil, badRules(err)
	}
	return &api.Policy{Text: cfg.Text(), Changes: site.Diff(s.Now().Text(), cfg.Text()), Warnings: s.people.Strangers(cfg)}, nil
}

// ReloadPolicy takes the rules as the file has them now.
func (s *Rules) ReloadPolicy(ctx context.Context, _ *policyInput) (*api.Policy, error) {
	before := s.Now().Text()
	if err := s.Reload(ctx); err != nil {
		return nil, badRules(err)
	}
	after := s.Now().Text()
	return &api.Policy{Text: after, Changes: site.Diff(before, after), Warnings: s.people.Strangers(*s.Now())}, nil
}

// badRules is the answer to an admin, who may read the file.
func badRules(err error) *api.Error {
	return api.Errorf(api.CodeBadRequest, "%v", err).WithHint("the old rules stay in force")
}
