package site

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/deploy"
)

// TestPerUser: what a file says of one user wins, key by key, and a bound can be
// raised or taken away.
func TestPerUser(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gctld.yaml")
	text := "limits:\n  perUser: {jobs: 10, templates: -1}\n  users: {ann: {jobs: 20, tasks: -1}}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	bob := defaultPerUser()
	bob.Jobs, bob.Templates = 10, 0
	ann := bob
	ann.Jobs, ann.Tasks = 20, 0
	for name, want := range map[string]PerUser{"ann": ann, "bob": bob} {
		if diff := cmp.Diff(want, c.Limits.Of(name)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	rules, err := c.Rules()
	if err != nil {
		t.Fatal(err)
	}
	if rules.PerUser.Jobs != 10 || rules.Users["ann"].Jobs != 20 || rules.Users["ann"].Tasks != 0 || rules.PerUser.Bytes != 256<<20 {
		t.Errorf("the controller goes by %+v and %+v", rules.PerUser, rules.Users)
	}
}

// TestTemplateListsBounds: the commented configuration has each bound of a user
// with its default.
func TestTemplateListsBounds(t *testing.T) {
	p := defaultPerUser()
	for _, k := range perUserKeys {
		if line := fmt.Sprintf("\n    %s: %d ", k.key, *k.at(&p)); !strings.Contains(deploy.Gctld, line) {
			t.Errorf("deploy/gctld.yaml has no line %q", line)
		}
	}
}
