package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gbatch/internal/hosttest"
)

// several are the controllers of a site that has more than one.
type several struct {
	s        *site
	machines []*os.File // networks of their own, or none
	all      []*daemon
	address  string // that names them all
	token    string // file with a user's
}

// newSeveral is a site with three controllers, which its nodes reach over TLS. Each listens
// for users at one of the addresses, and for the others at one of the last three; free ones where there are none.
func newSeveral(t *testing.T, o siteOptions, at []string, machines []*os.File) *several {
	for len(at) < 6 {
		free, err := hosttest.FreeAddress()
		if err != nil {
			t.Fatal(err)
		}
		at = append(at, free)
	}
	c := &several{machines: machines}
	o.listen, o.nodeConfig = at[0], "joinTokenFile: DIR/join.token\n"
	o.ctldConfig += quick + fmt.Sprintf("advertise: '%s'\nreplica: {name: c1, listen: '%s', patience: 2 seconds}\n", strings.Join(at[:3], ","), at[3])
	o.nodesDial = func(_ int, controller string) string {
		dir := filepath.Dir(strings.TrimPrefix(controller, "unix://"))
		r := execute(exec.Command(filepath.Join(bin, "gctld"), "init", "--config", dir+"/gctld.yaml"))
		c.address = regexp.MustCompile(`https://[^']+`).FindString(r.out)
		return "'" + c.address + "'"
	}
	made := o.made
	o.made = func(s *site) {
		if len(machines) > 0 {
			s.ctld.netns = machines[0]
		}
		if made != nil {
			made(s)
		}
	}
	o.ready = func(s *site) { c.s = s; c.grow(at) }
	newSite(t, o)
	return c
}

// grow has two more controllers join, and makes tokens.
func (c *several) grow(at []string) {
	s, t := c.s, c.s.t
	t.Helper()
	c.all = []*daemon{s.ctld}
	for i := 1; i < 3; i++ {
		name := fmt.Sprint("c", i+1)
		d := s.newDaemon("gctld", name, "")
		if len(c.machines) > 0 {
			d.netns = c.machines[i]
		}
		if err := os.Remove(d.config); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(s.dir, name+".join")
		s.must("gadm", "controllers", "add", name, at[3+i], "--to", file)
		s.must("gctld", "init", "--join", file, "--config", d.config, "--dir", filepath.Join(s.dir, name), "--socket", c.socket(i), "--listen", at[i], "--advertise", strings.Join(at[:3], ","))
		t.Cleanup(func() {
			if err := d.stop(); err != nil {
				t.Errorf("%s did not stop well: %v", name, err)
			}
			if t.Failed() {
				t.Logf("the end of the log of %s:\n%s", name, tail(d.log, 40))
			}
		})
		d.start()
		c.all = append(c.all, d)
	}
	c.wholly()
	c.token = filepath.Join(s.dir, "ann.token")
	s.must("gadm", "token", "create", "-u", "ann", "--to", c.token)
	s.must("gadm", "node-token", "create", "--uses", fmt.Sprint(len(s.nodes)), "--to", s.dir+"/join.token")
}

func (c *several) socket(i int) string {
	if i == 0 {
		return c.s.socket()
	}
	return filepath.Join(c.s.dir, fmt.Sprint("c", i+1, ".sock"))
}

// lists are what each controller says of all; nothing of those that do not lead.
func (c *several) lists() []string {
	var out []string
	for i := range c.all {
		cmd := exec.Command(filepath.Join(bin, "gadm"), "controllers", "--timeout", "2s") // one may be stopped
		cmd.Env = append(cleanEnv(), "GBATCH_CONTROLLER=unix://"+c.socket(i))
		out = append(out, execute(cmd).out)
	}
	return out
}

// wholly waits until one leads and two follow.
func (c *several) wholly() {
	c.s.t.Helper()
	eventually(c.s.t, "three controllers take part", func() bool {
		return slices.ContainsFunc(c.lists(), func(text string) bool {
			return strings.Count(text, "leads") == 1 && strings.Count(text, "follows") == len(c.all)-1
		})
	})
}

// leader is the one that leads.
func (c *several) leader() int {
	c.s.t.Helper()
	found := -1
	eventually(c.s.t, "a controller leads", func() bool {
		found = slices.IndexFunc(c.lists(), func(text string) bool { return strings.Contains(text, "leads") })
		return found >= 0
	})
	return found
}

// as runs a command as ann, with the address of all.
func (c *several) as(name string, args ...string) string {
	c.s.t.Helper()
	r := c.s.run(name, append([]string{"--controller", c.address, "--token-file", c.token}, args...)...)
	if r.code != 0 {
		c.s.t.Fatalf("%s %s: %v", name, strings.Join(args, " "), r)
	}
	return strings.TrimSpace(r.out)
}

// TestSeveralControllers: whoever of three controllers is killed while it leads, no job that was
// acknowledged is lost or runs twice, what runs goes on, and numbers go on.
func TestSeveralControllers(t *testing.T) {
	t.Parallel() // it mostly waits
	c := newSeveral(t, siteOptions{}, nil, nil)
	s := c.s
	eventually(t, "the setting that the others lack is named", func() bool {
		return slices.ContainsFunc(c.lists(), func(text string) bool { return strings.Count(text, "limits.grace") == 2 })
	})
	once := func(i int) string {
		return s.write(doc{command: sh(fmt.Sprintf("echo %d >>/project/ran", i)), storage: []any{map[string]any{"containerPath": "/project"}}}.json())
	}
	long := c.as("gsubmit", s.write(doc{command: sh("until [ -e /project/over ]; do sleep 0.1; done; echo long >>/project/ran"), storage: []any{map[string]any{"containerPath": "/project"}}}.json()))
	eventually(t, "the job runs", func() bool { return strings.Contains(c.as("gqueue", "show", long), "RUNNING") })
	ids := []string{}
	for round := range 3 {
		killed := c.all[c.leader()]
		killed.kill()
		for i := range 2 {
			ids = append(ids, c.as("gsubmit", once(2*round+i)))
		}
		killed.start()
		c.wholly()
	}
	if err := os.WriteFile(s.project()+"/over", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	c.as("gqueue", append([]string{"wait", long}, ids...)...)
	got := lines(t, s.project()+"/ran")
	slices.Sort(got)
	if want := []string{"0", "1", "2", "3", "4", "5", "long"}; !slices.Equal(got, want) {
		t.Errorf("ran %q, want %q", got, want)
	}
	if want := []string{"2", "3", "4", "5", "6", "7"}; !slices.Equal(ids, want) {
		t.Errorf("numbers %q, want %q", ids, want)
	}

	c.logsOutlive()
	c.directoriesOutlive()
	c.first()
}

// first goes back to one controller: the first leads, and the others leave.
func (c *several) first() {
	s, t := c.s, c.s.t
	t.Helper()
	eventually(t, "the first leads", func() bool {
		i := c.leader()
		if i != 0 {
			s.runOn(c.socket(i), "gadm", "controllers", "transfer", "c1")
		}
		return i == 0
	})
	c.wholly()
	eventually(t, "the others have left", func() bool {
		s.run("gadm", "controllers", "remove", "c2", "c3")
		out := s.run("gadm", "controllers").out
		return strings.Count(out, "\n") == 2 && strings.Contains(out, "leads")
	})
}

// runOn runs a command against another socket.
func (s *site) runOn(socket, name string, args ...string) result {
	cmd := exec.Command(filepath.Join(bin, name), args...)
	cmd.Env = append(cleanEnv(), "GBATCH_CONTROLLER=unix://"+socket)
	return execute(cmd)
}
