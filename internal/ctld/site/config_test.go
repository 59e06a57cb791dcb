package site

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBadConfigIsRefused proves that a mistake in gctld.yaml is told in words of
// the file, and that all of them are told.
func TestBadConfigIsRefused(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       []string
	}{
		{"unknown key", "polici: {}\n", []string{`polici (line 1): is not a field of this document; did you mean "policy"?`}},
		{"key of another object", "admins: [root]\nhalfLife: 3 days\n", []string{"halfLife (line 2): is not a field here; it belongs in policy"}},
		{"twice", "listen: ''\nlisten: a:1\nimageAliases: {a: x, a: y}\n", []string{"listen (line 2): is given twice", "imageAliases.a (line 3): is given twice"}},
		{"kinds and values", "dir: [x]\nprojects: {}\nadmins: [{grupp: x}, ~, [y]]\nkeep: {endedCount: many, endedFor: soon}\nsocket: here\n", []string{
			"8 problems", "dir (line 1): must be a string", "projects (line 2): must be a list, is an object", "admins[0] (line 3): is no member; write", "admins[1] (line 3): is empty",
			"admins[2] (line 3): is no member", "keep.endedCount (line 4): must be a whole number, is a string", `keep.endedFor (line 4): "soon" is not a duration`, `socket (line 5): "here" must be an absolute path`}},
		{"negative weight", "policy: {weights: {age: -1}}\n", []string{"policy.weights.age (line 1): is -1"}},
		{"absurd weight", "policy: {weights: {fairShare: 9000000000000}}\n", []string{"policy.weights.fairShare (line 1): is 9000000000000"}},
		{"zero half-life", "policy: {halfLife: 0}\n", []string{"policy.halfLife (line 1): is 0"}},
		{"duration", "policy: {halfLife: 0 days}\n", []string{`policy.halfLife (line 1): "0 days" is not a duration: must be longer than zero`}},
		{"negative billing", "policy: {cpuWeight: -3, gpuWeights: {H100: -1}}\n", []string{"cpu and gib weigh -3", "policy.gpuWeights.H100 (line 1): weighs -1"}},
		{"negative shares", "projects: [{name: a, shares: -2}]\ndefaultProject: a\n", []string{"projects[0].shares (line 1): -2"}},
		{"cycle", "projects: [{name: a, parent: b}, {name: b, parent: a}]\ndefaultProject: a\n", []string{"a -> b -> a", "b -> a -> b"}},
		{"unknown parent", "projects: [{name: a, parent: x}]\ndefaultProject: a\n", []string{`parent "x"`}},
		{"user's shares", "projects: [{name: a, userShares: {ann: -1}}]\ndefaultProject: a\n", []string{`gives user "ann" -1 shares`}},
		{"budget", "projects: [{name: a, budget: -1}]\ndefaultProject: a\n", []string{"budget of -1"}},
		{"gid", "projects: [{name: a, gid: 4294967296}, {name: b, gid: 4294967295}, {name: c, gid: -1}, {name: d, gid: 4294967294}]\ndefaultProject: a\n",
			[]string{"projects[0].gid (line 1): 4294967296", "projects[1].gid (line 1): 4294967295", "projects[2].gid (line 1): -1"}},
		{"no jobs", "limits: {perUser: {jobs: 0}}\n", []string{"limits.perUser.jobs (line 1): 0: use 1 to 1000000000, or -1 for no bound"}},
		{"odd bound of one", "limits: {users: {ann: {tasks: -2}}}\n", []string{"limits.users.ann.tasks (line 1): -2"}},
		{"partitions", "partitions:\n- {name: a, default: true, maxDuration: 29 days}\n- {name: a, default: true, state: off, projects: [x], qos: [y], minNodes: 3, maxNodes: 2}\n", []string{
			"partitions[0] (line 2): has a duration above limits.maxDuration, 4 weeks", `partitions[1].name (line 3): "a" is there twice`, "partitions[1].default (line 3): partition a is the default already",
			`partitions[1].state (line 3): "off"`, `partitions[1].projects (line 3): "x"`, `partitions[1].qos (line 3): "y"`, "partitions[1].minNodes (line 3): is above maxNodes"}},
		{"two", "policy: {mode: best, weights: {size: -1}}\n", []string{`policy.mode (line 1): is "best"`, "policy.weights.size (line 1): is -1"}},
		{"classes", "policy:\n  estimates: exact\n  qos: {a: {preempts: [b]}, c: {priority: 2000, perUser: {gpus: -1}}}\n  perUser: {queued: -1}\n", []string{
			"policy.estimates (line 2): \"exact\" is for the simulator", `policy.qos.a.preempts (line 3): names "b"`, "policy.qos.c.priority (line 3): is 2000",
			"policy.qos.c.perUser (line 3): has a limit below 0", "policy.perUser (line 4): has a limit below 0"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "gctld.yaml")
			if err := os.WriteFile(path, []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Read(path)
			for _, want := range tc.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v does not say %q", err, want)
				}
			}
		})
	}
}

func TestShareTreeOfTheConfiguration(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gctld.yaml")
	text := "defaultProject: vision\nprojects:\n- {name: lab, shares: 3, budget: 60}\n- {name: vision, parent: lab, userShares: {ann: 2}}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := c.Rules()
	if err != nil {
		t.Fatal(err)
	}
	tree := rules.Accounting.Tree
	if lab, vision := tree["lab"], tree["vision"]; lab.Shares != 3 || lab.Budget != 60 || vision.Parent != "lab" || vision.Shares != 1 || vision.Users["ann"] != 2 {
		t.Errorf("the share tree is %+v", tree)
	}
}
