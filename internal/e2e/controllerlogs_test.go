package e2e

import (
	"path/filepath"
)

// logsOutlive loses the node of a job that has ended, and the controller that kept its
// log: another one has it.
func (c *several) logsOutlive() {
	s, t := c.s, c.s.t
	t.Helper()
	id := c.as("gsubmit", s.write(doc{command: sh("echo said")}.json()))
	c.as("gqueue", "wait", id)
	eventually(t, "the log is with two controllers", func() bool { return c.copies() >= 2 })
	leads := c.all[c.leader()]
	if err := s.nodes[0].stop(); err != nil {
		t.Errorf("the node did not stop well: %v", err)
	}
	leads.kill()
	eventually(t, "another controller gives the log", func() bool {
		return s.run("glog", "--controller", c.address, "--token-file", c.token, id).out == "said\n"
	})
	leads.start()
	s.nodes[0].start()
	c.wholly()
}

// directoriesOutlive loses the controller that took a job with its directory: the job has it all
// the same.
func (c *several) directoriesOutlive() {
	s, t := c.s, c.s.t
	t.Helper()
	dir := s.tree("along", map[string]string{"text": "brought\n"})
	id := c.as("gsubmit", "--hold", "--image", image, "-c", "1", "--mem", "1G", "--workdir-upload", dir, "--", "cat", "text")
	if with, err := filepath.Glob(filepath.Join(s.dir, "*", "trees", "*", "chunks", "*", "*")); err != nil || len(with) < 2 {
		t.Fatalf("the directory of an accepted job is at %q, %v", with, err)
	}
	leads := c.all[c.leader()]
	leads.kill()
	c.as("gcancel", "--release", id)
	c.as("gqueue", "wait", id)
	if got := c.as("glog", id); got != "brought" {
		t.Errorf("the job wrote %q", got)
	}
	leads.start()
	c.wholly()
}

// copies is with how many controllers the log of the one job is that wrote something. It is small,
// so it has a directory only where it came in two pieces.
func (c *several) copies() int {
	n := 0
	for _, file := range []string{"*/*/complete", "small/*.pack"} {
		found, err := filepath.Glob(filepath.Join(c.s.dir, "*", "logs", "u-*", file))
		if err != nil {
			c.s.t.Fatal(err)
		}
		n += len(found)
	}
	return n
}
