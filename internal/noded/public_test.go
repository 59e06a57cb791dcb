package noded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/noded/config"
)

// TestNoPathsOfTheNode: whatever fails, users are told of their storage and of the
// node's parts by the names that they know, in ranks' ends, in the node's reason and
// in what streams answer.
func TestNoPathsOfTheNode(t *testing.T) {
	top := shared(t)
	s := newSite(t, func(c *config.Config) { c.Storage = []config.StorageRoot{{Name: "/project", Path: top + "/{project}"}} })
	s.start()
	hidden := []string{top, s.a.cfg.StateDir, s.a.cfg.Images.Dir}
	public := func(what, text string, want string) {
		t.Helper()
		for _, path := range hidden {
			if strings.Contains(text, path) {
				t.Errorf("%s tells of %s: %s", what, path, text)
			}
		}
		if !strings.Contains(text, want) {
			t.Errorf("%s is %q, want %q", what, text, want)
		}
	}

	if err := os.WriteFile(top+"/proj", nil, 0o600); err != nil { // where the project's directory belongs
		t.Fatal(err)
	}
	e, _ := s.runNoLog(rankID(1), order("true", func(o *api.RunOrder) {
		o.Spec.Request.Docker.Storage = []job.Storage{{HostPath: "/project/x", ContainerPath: "/x"}}
	}))
	public("a mount's error", e.Message, `"/project/x"`)

	status := s.a.publicStatus(node.RankStatus{
		Exit:     &node.Exit{Message: fmt.Sprintf("open %s/proj/a: denied; mount %s/ranks/1/mnt/0: busy", top, s.a.cfg.StateDir)},
		Progress: "unpacking into " + s.a.cfg.Images.Dir + "/x", Resize: &node.Resized{Error: "write " + s.a.cfg.StateDir + "/y: denied"},
	})
	public("an end", status.Exit.Message, "open /project/a: denied; mount the node's state directory: busy")
	public("a progress", status.Progress, "the node's image store")
	public("a resize", status.Resize.Error, "the node's state directory")
	public("a prepull", s.a.publicPrepulled([]node.Prepulled{{Error: "open " + s.a.cfg.Images.Dir + "/x: denied"}})[0].Error, "the node's image store")

	s.a.health.lacks("write " + s.a.cfg.StateDir + "/z: denied")
	until(t, "the node says what it lacks", func() bool { s.nudge(); return len(s.unhealthy()) == 1 })
	public("the node's reason", s.unhealthy()[0], "the node's state directory")

	id := rankID(2)
	s.want(id, order("echo hello"))
	s.exit(id)
	parts, err := filepath.Glob(s.a.node.ContainerDir(id) + "/log/*")
	if err != nil || len(parts) == 0 {
		t.Fatalf("the log is in %v, %v", parts, err)
	}
	for _, path := range parts { // cannot be read
		if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	b := s.open(api.StreamRequest{Kind: "log", Rank: id, Tail: 3})
	s.finish(b)
	b.mu.Lock()
	defer b.mu.Unlock()
	public("a log that the disk does not give", b.text.String()+b.fault, "damaged on the disk")
}
