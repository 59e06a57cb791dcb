package e2e

import (
	"cmp"
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
	at       []string   // where each listens for users, and then where for the others
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
	c := &several{machines: machines, at: at}
	o.listen, o.nodeConfig = at[0], "joinTokenFile: DIR/join.token\n"
	o.ctldConfig += quick + fmt.Sprintf("advertise: '%s'\nreplica: {name: c1, listen: '%s', patience: 2 seconds}\n", strings.Join(at[:3], ","), at[3])
	o.nodesDial = func(_ int, controller string) string {
		dir := filepath.Dir(strings.TrimPrefix(controller, "unix://"))
		r := execute(exec.Command(filepath.Join(cmp.Or(o.bin, bin), "gctld"), "init", "--config", dir+"/gctld.yaml"))
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
	o.ready = func(s *site) { c.s = s; c.grow() }
	newSite(t, o)
	return c
}

// grow has two more controllers join, and makes tokens.
func (c *several) grow() {
	s, t := c.s, c.s.t
	t.Helper()
	c.all = []*daemon{s.ctld}
	for i := 1; i < 3; i++ {
		name := c.name(i)
		d := s.newDaemon("gctld", name, "")
		if len(c.machines) > 0 {
			d.netns = c.machines[i]
		}
		t.Cleanup(func() {
			if err := d.stop(); err != nil {
				t.Errorf("%s did not stop well: %v", name, err)
			}
			if t.Failed() {
				t.Logf("the end of the log of %s:\n%s", name, tail(d.log, 40))
			}
		})
		c.all = append(c.all, d)
		c.join(i)
	}
	c.wholly()
	c.token = filepath.Join(s.dir, "ann.token")
	s.must("gadm", "token", "create", "-u", "ann", "--to", c.token)
	s.must("gadm", "node-token", "create", "--uses", fmt.Sprint(len(s.nodes)), "--to", s.dir+"/join.token")
}

// join starts a controller that has no records, as one of the site's.
func (c *several) join(i int) {
	c.s.t.Helper()
	d, name := c.all[i], c.name(i)
	if err := os.Remove(d.config); err != nil {
		c.s.t.Fatal(err)
	}
	file := filepath.Join(c.s.dir, name+".join")
	if r := c.s.runOn(c.socket(c.leader()), "gadm", "controllers", "add", name, c.at[3+i], "--to", file); r.code != 0 {
		c.s.t.Fatalf("add %s: %v", name, r)
	}
	r := execute(exec.Command(filepath.Join(d.bin, "gctld"), "init", "--join", file, "--config", d.config, "--dir", c.dir(i), "--socket", c.socket(i), "--listen", c.at[i], "--advertise", strings.Join(c.at[:3], ",")))
	if r.code != 0 {
		c.s.t.Fatalf("init %s: %v", name, r)
	}
	d.start()
}

// dir is where a controller has its records.
func (c *several) dir(i int) string {
	if i == 0 {
		return c.s.dir + "/ctld"
	}
	return filepath.Join(c.s.dir, c.name(i))
}

func (c *several) name(i int) string { return fmt.Sprint("c", i+1) }

func (c *several) socket(i int) string {
	if i == 0 {
		return c.s.socket()
	}
	return filepath.Join(c.s.dir, c.name(i)+".sock")
}

// said is what each controller says of all; those that do not lead name who does.
func (c *several) said() []result {
	var out []result
	for i := range c.all {
		cmd := exec.Command(filepath.Join(c.s.bin, "gadm"), "controllers", "--timeout", "2s") // one may be stopped
		cmd.Env = append(cleanEnv(), "GBATCH_CONTROLLER=unix://"+c.socket(i))
		out = append(out, execute(cmd))
	}
	return out
}

// lists are what each controller says of all; nothing of those that do not lead.
func (c *several) lists() []string {
	var out []string
	for _, r := range c.said() {
		out = append(out, r.out)
	}
	return out
}

// follows is what one says that hears of who leads.
var follows = regexp.MustCompile(`and c[123] leads`)

// whole says whether one leads and the others follow, by its word and by theirs: it may still count one that has just ended.
func (c *several) whole() bool {
	lead, follow := 0, 0
	for _, r := range c.said() {
		switch {
		case strings.Count(r.out, "leads") == 1 && strings.Count(r.out, "follows") == len(c.all)-1:
			lead++
		case follows.MatchString(r.err):
			follow++
		}
	}
	return lead == 1 && follow == len(c.all)-1
}

// wholly waits until one leads and two follow.
func (c *several) wholly() {
	c.s.t.Helper()
	eventually(c.s.t, "three controllers take part", c.whole)
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
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Env = append(cleanEnv(), "GBATCH_CONTROLLER=unix://"+socket)
	return execute(cmd)
}
