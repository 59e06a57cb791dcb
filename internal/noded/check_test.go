package noded

import (
	"context"
	"strings"
	"testing"

	"gbatch/internal/noded/config"
	"gbatch/internal/noded/preflight"
)

// TestCheck: a machine on which the other tests run has what it takes, and
// what is made to fail says what to do.
func TestCheck(t *testing.T) {
	s := newSite(t, func(c *config.Config) {
		c.Storage = []config.StorageRoot{{Name: "/project", Path: t.TempDir() + "/{project}"}}
	})
	run := func(change func(*config.Config)) (int, string) {
		cfg := s.cfg
		if change != nil {
			change(&cfg)
		}
		var out strings.Builder
		return preflight.Check(context.Background(), cfg, "test", &out), out.String()
	}
	if failed, out := run(nil); failed != 0 {
		t.Errorf("%d checks failed:\n%s", failed, out)
	}
	if _, out := run(func(c *config.Config) { c.AppArmor = "gbatch-job" }); !strings.Contains(out, "AppArmor") {
		t.Errorf("nothing is said of AppArmor:\n%s", out)
	}
	for name, tc := range map[string]struct {
		change func(*config.Config)
		want   string
	}{
		"controller": {func(c *config.Config) { c.Controller = "unix:///no/such/socket" }, "does not answer"},
		"storage": {func(c *config.Config) { c.Storage = []config.StorageRoot{{Name: "/x", Path: "/no/such/place"}} },
			"fix: mkdir -p /no/such/place, or mount it"},
		"state": {func(c *config.Config) { c.StateDir = "/proc/none" }, "FAIL  state directory"},
		"disk":  {func(c *config.Config) { c.MinFree = 1 << 60 }, "FAIL  disk full"},
		"remote": {func(c *config.Config) {
			c.Controller = "https://127.0.0.1:9#sha256=" + strings.Repeat("A", 43)
		}, "gadm node-token create"},
	} {
		t.Run(name, func(t *testing.T) {
			if failed, out := run(tc.change); failed == 0 || !strings.Contains(out, tc.want) {
				t.Errorf("%d failed, want %q in:\n%s", failed, tc.want, out)
			}
		})
	}
}
