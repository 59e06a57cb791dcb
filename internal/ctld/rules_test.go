package ctld

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/ctld/site"
)

// fileSite is a site whose rules come from a file.
func fileSite(t *testing.T, text string) (*testSite, func(string)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gctld.yaml")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(text)
	s := &testSite{t: t, read: func() (site.Config, error) { return site.Read(path) }}
	s.start()
	t.Cleanup(func() { s.stop() })
	return s, write
}

func rulesFile(dir, rest string) string {
	return fmt.Sprintf("dir: %s\nsocket: ''\nlisten: 127.0.0.1:0\nreserveMiB: 0\n%s", dir, rest)
}

// TestRulesFollowTheFile: roles and members are those of the file at each
// request; a reload is whole or not at all.
func TestRulesFollowTheFile(t *testing.T) {
	dir := t.TempDir()
	s, write := fileSite(t, rulesFile(dir, "projects:\n  - name: default\n  - name: lab\n    members: [ann]\n"))
	bob := s.user("bob")
	job := hello(1)
	job.Project = "lab"
	if _, err := bob.Submit(t.Context(), job, ""); !client.IsCode(err, api.CodeDenied) {
		t.Errorf("not a member yet: %v", err)
	}
	write(rulesFile(dir, "operators: [bob]\nprojects:\n  - name: default\n  - name: lab\n    members: [ann, bob]\n    gid: 77\n"))
	checked, err := s.CheckPolicy(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"- operators: []", "+ operators: [bob]", "- projects[lab].members: [ann]", "+ projects[lab].members: [ann, bob]", "+ projects[lab].gid: 77"}, checked.Changes); diff != "" {
		t.Errorf("what would change (-want +got):\n%s", diff)
	}
	if st, err := bob.Status(t.Context()); err != nil || st.Role != "user" {
		t.Errorf("a check changed bob's role to %+v, %v", st, err)
	}
	if _, err := s.ReloadPolicy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if st, err := bob.Status(t.Context()); err != nil || st.Role != "operator" {
		t.Errorf("bob's role by the same token is %+v, %v", st, err)
	}
	if _, err := bob.Submit(t.Context(), job, ""); err != nil {
		t.Errorf("as a member: %v", err)
	}
	for name, tc := range map[string]struct{ text, want string }{
		"unknown_key":   {"operators: [bob]\nprojekts: []\n", "projekts"},
		"value":         {"operators: [bob]\nprojects:\n  - name: default\n    gid: -5\n", "projects[0].gid (line 8): -5"},
		"two_problems":  {"operators: [bob]\nlimits: {maxQueuedJobs: 0}\nprojects:\n  - name: 'a b'\n", "projects[0].name (line 8)"},
		"bad_member":    {"projects:\n  - name: default\n    members: [{grupp: x}]\n", "{group: NAME}"},
		"policy":        {"policy: {mode: magic}\n", "policy.mode (line 5)"},
		"live_jobs":     {"projects:\n  - name: default\n", "project lab has 1 jobs"},
		"other_listen":  {"listen: 127.0.0.1:1\n", "restart"},
		"not_even_yaml": {"operators: [bob\n", "(line 4): is not YAML"},
	} {
		text := rulesFile(dir, tc.text)
		if name == "other_listen" {
			text = strings.Replace(text, "listen: 127.0.0.1:0\n", "", 1) + "projects: [{name: default}, {name: lab}]\n"
		}
		write(text)
		for _, ask := range []func(context.Context) (*api.Policy, error){s.CheckPolicy, s.ReloadPolicy} {
			if _, err := ask(t.Context()); err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "old rules stay") {
				t.Errorf("%s: %v; want %q", name, err, tc.want)
			}
		}
		if st, err := bob.Status(t.Context()); err != nil || st.Role != "operator" {
			t.Errorf("%s: bob's role is %+v, %v", name, st, err)
		}
	}
}

// TestReloadSignal: SIGHUP is as `gadm policy reload`.
func TestReloadSignal(t *testing.T) {
	dir := t.TempDir()
	s, write := fileSite(t, rulesFile(dir, ""))
	write(rulesFile(dir, "operators: [ann]\n"))
	sig := make(chan os.Signal)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { // ends with ctx
		defer close(done)
		s.server.ReloadOn(ctx, sig)
	}()
	sig <- os.Interrupt
	sig <- os.Interrupt // taken when the first was dealt with
	cancel()
	<-done
	if st, err := s.user("ann").Status(t.Context()); err != nil || st.Role != "operator" {
		t.Errorf("ann is %+v, %v", st, err)
	}
}

// TestProjectsWhileItRuns: projects are made, changed and removed, and are there
// after a restart; those of the file are changed in the file alone.
func TestProjectsWhileItRuns(t *testing.T) {
	s := newSite(t, nil)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	put := func(p api.Project, create bool) error { _, err := s.PutProject(t.Context(), p, create); return err }
	lab := api.Project{Name: "lab", GID: 2001, Members: []string{"ann"}, Shares: 3, Clusters: []int{1}, Limits: api.ProjectLimits{Queued: 1, GPUs: 1.5}}
	must(put(lab, true))
	job := hello(1)
	job.Project = "lab"
	ann := s.user("ann")
	if r, err := ann.Submit(t.Context(), job, ""); err != nil || r.Project != "lab" {
		t.Fatalf("a job of the new project: %+v, %v", r, err)
	}
	if _, err := ann.Submit(t.Context(), job, ""); err == nil {
		t.Error("its limit of waiting jobs does not hold")
	}
	if _, err := s.user("eve").Submit(t.Context(), job, ""); !client.IsCode(err, api.CodeDenied) {
		t.Errorf("not a member: %v", err)
	}
	if err := put(lab, true); !client.IsCode(err, api.CodeConflict) {
		t.Errorf("to make it twice: %v", err)
	}
	if err := put(api.Project{Name: "none"}, false); !client.IsCode(err, api.CodeNotFound) {
		t.Errorf("to change what is not there: %v", err)
	}
	if err := put(api.Project{Name: "default"}, false); !client.IsCode(err, api.CodeConflict) || !strings.Contains(err.Error(), "configuration file") {
		t.Errorf("to change one of the file: %v", err)
	}
	if err := put(api.Project{Name: "bad", GID: -1}, true); err == nil || !strings.Contains(err.Error(), "gid") {
		t.Errorf("one that does not hold: %v", err)
	}
	lab.Limits.Queued = 0
	lab.Groups = []string{"no-such-group-anywhere"}
	p, err := s.PutProject(t.Context(), lab, false)
	must(err)
	if said := strings.Join(p.Warnings, "\n"); !strings.Contains(said, "project lab.members: nobody is in no-such-group-anywhere") {
		t.Errorf("of a group that is not known it says %q", said)
	}
	lab.Groups = nil
	must(put(lab, false))
	s.stop()
	s.start()
	l, err := s.Projects(t.Context())
	must(err)
	if diff := cmp.Diff([]api.Project{{Name: "default", File: true}, lab}, l.Projects); diff != "" {
		t.Errorf("projects after a restart (-want +got):\n%s", diff)
	}
	if err := s.DropProject(t.Context(), "lab"); err == nil || !strings.Contains(err.Error(), "jobs that wait") {
		t.Errorf("to remove one with jobs: %v", err)
	}
	if _, err := s.Action(t.Context(), "cancel", &api.ActionRequest{Project: "lab"}); err != nil {
		t.Fatal(err)
	}
	must(s.DropProject(t.Context(), "lab"))
	if l, err = s.Projects(t.Context()); err != nil || len(l.Projects) != 1 {
		t.Errorf("after it was removed: %+v, %v", l, err)
	}
}

// TestGroups: a group's members have the role that the rules give the group.
func TestGroups(t *testing.T) {
	programs := t.TempDir()
	for name, script := range map[string]string{
		"id":     "case $3 in ann) echo 1 7001;; ops) echo 1 7002;; esac",
		"getent": "case $3 in lab-of-ann) echo 'lab-of-ann:*:7001:';; staff-of-hpc) echo 'staff-of-hpc:*:7002:';; *) exit 2;; esac",
	} {
		if err := os.WriteFile(filepath.Join(programs, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", programs+":"+os.Getenv("PATH"))
	s := newSite(t, func(c *site.Config) {
		c.Operators = byGroup("staff-of-hpc")
		c.Projects = []site.Project{{Name: "default"}, {Name: "lab", Members: byGroup("lab-of-ann")}}
	})
	for user, want := range map[string]string{"ann": "user", "ops": "operator", "eve": "user"} {
		c := s.user(user)
		if st, err := c.Status(t.Context()); err != nil || st.Role != want {
			t.Errorf("%s is %+v, %v", user, st, err)
		}
		job := hello(1)
		job.Project = "lab"
		if _, err := c.Submit(t.Context(), job, ""); (err == nil) != (user != "eve") {
			t.Errorf("%s submits to the group's project: %v", user, err)
		}
	}
}
