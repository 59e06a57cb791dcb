package e2e

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gbatch/internal/api/apitest"
	"gbatch/internal/client"
	"gbatch/internal/e2e/crash"
)

// patience is for what should take well under a second.
const patience = 60 * time.Second

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	if !poll(patience, ok) {
		t.Fatalf("waited %v in vain until %s", patience, what)
	}
}

// quick is for sites whose jobs do not heed TERM.
const quick = "limits: {grace: 1 second}\n"

// siteOptions are how a site differs from one controller and one node that
// offers 8 cores.
type siteOptions struct {
	nodes       int
	bin         string                  // directory of its programs; empty: those that are tested
	ctldDir     string                  // of the controller's state; empty: below the site's
	listen      string                  // of the controller over TCP; empty: any port
	ctldConfig  string                  // lines of gctld.yaml
	nodeConfig  string                  // lines of each gnoded.yaml; DIR is the site's directory
	nodeGPUs    []string                // simulated on each node, as h100:4
	nodeNetwork string                  // further keys of its network, as ", allowHost: true"
	nodeNetns   func(node int) *os.File // the machine's network, as the node sees it; nil: the tests'
	nodesDial   func(node int, controller string) string
	nodeDirs    []string    // where nodes have their state; empty: below the site's
	made        func(*site) // called before anything is started
	ready       func(*site) // called when the controller answers, before nodes start
}

// description is that of the API, which all controllers here have alike.
var description apitest.Description

// site is a controller with its nodes, as processes, in one directory.
type site struct {
	t     *testing.T
	dir   string
	bin   string // directory of the programs that it is used by, and of what daemons run that are new
	ctld  *daemon
	nodes []*daemon
	api   *client.Client
	files int // job files written
}

// newSite starts a site; the test's cleanup stops it and looks for leftovers.
func newSite(t *testing.T, o siteOptions) *site {
	t.Helper()
	needs(t)
	dir, err := os.MkdirTemp("/tmp", "gbatch-e2e-site-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir+"/project", 0o755); err != nil { // the administrator's part
		t.Fatal(err)
	}
	s := &site{t: t, dir: dir, bin: cmp.Or(o.bin, bin)}
	s.api = &client.Client{Address: "unix://" + s.socket(), Timeout: patience, Transport: apitest.Socket(s.socket(), &description, func(err error) { t.Error(err) })}
	t.Cleanup(s.close)
	if o.ctldDir == "" {
		o.ctldDir = dir + "/ctld"
	}
	if o.listen == "" {
		o.listen = "127.0.0.1:0"
	}
	config := fmt.Sprintf("dir: %s\nsocket: %s\nlisten: %s\nreserveMiB: 64\nlogs: {freeMiB: 64}\n%s", o.ctldDir, s.socket(), o.listen, o.ctldConfig)
	s.ctld = s.newDaemon("gctld", "gctld", config)
	if !strings.Contains(o.nodeConfig, "images:") {
		o.nodeConfig += "images: {hosts: [127.0.0.1]}\n" // the tests' registries
	}
	for i := range max(o.nodes, 1) {
		name := s.nodeName(i)
		controller := "unix://" + s.socket()
		if o.nodesDial != nil {
			controller = o.nodesDial(i, controller)
		}
		state := filepath.Join(dir, name)
		if i < len(o.nodeDirs) && o.nodeDirs[i] != "" {
			state = filepath.Join(o.nodeDirs[i], name)
		}
		config := o.nodeConfig
		if i < len(o.nodeGPUs) {
			config += fmt.Sprintf("gpu: {simulate: %q}\n", o.nodeGPUs[i])
		}
		s.nodes = append(s.nodes, s.newDaemon("gnoded", name, fmt.Sprintf(`name: %s
controller: %s
stateDir: %s
cores: 8
minFree: 100MiB
network: {mode: bridge%s}
storage:
  - name: /project
    path: %s/project/{project}
    create: true
%s`, name, controller, state, o.nodeNetwork, dir, strings.ReplaceAll(config, "DIR", dir))))
		s.nodes[i].stateDir = state
	}
	if o.made != nil {
		o.made(s)
	}
	s.ctld.start()
	eventually(t, "the controller answers", func() bool { _, err := s.api.Status(t.Context()); return err == nil })
	if o.ready != nil {
		o.ready(s)
	}
	for i, n := range s.nodes {
		if o.nodeNetns != nil {
			n.netns = o.nodeNetns(i)
		}
		n.start()
	}
	s.waitNodes("up", len(s.nodes))
	return s
}

func (s *site) socket() string { return s.dir + "/gctld.sock" }

// nodeName is unique on the machine.
func (s *site) nodeName(i int) string {
	return fmt.Sprintf("n%d-%s", i+1, strings.TrimPrefix(filepath.Base(s.dir), "gbatch-e2e-site-"))
}

// project is the directory that jobs see as /project.
func (s *site) project() string { return s.dir + "/project/default" }

// waitNodes waits until so many nodes are in a state.
func (s *site) waitNodes(state string, n int) {
	s.t.Helper()
	eventually(s.t, fmt.Sprintf("%d nodes are %s", n, state), func() bool {
		info, err := s.api.Cluster(s.t.Context())
		if err != nil {
			return false
		}
		have := 0
		for _, node := range info.Nodes {
			if node.State == state {
				have++
			}
		}
		return have == n
	})
}

// daemon is a program that can be killed and started again.
type daemon struct {
	s        *site
	name     string
	program  string
	bin      string // directory of the program
	config   string
	log      string
	stateDir string        // of a node
	netns    *os.File      // its network; nil: the tests'
	boot     string        // file with the boot that it finds the machine in; empty: the machine's
	clock    *clock        // that it goes by; nil: the machine's
	tracer   *crash.Tracer // that follows it; nil: none
	cmd      *exec.Cmd     // nil: not running
	done     chan struct{} // closed when cmd has ended
	err      error         // of the end, once done
}

func (s *site) newDaemon(program, name, config string) *daemon {
	s.t.Helper()
	d := &daemon{s: s, name: name, program: program, bin: s.bin, config: filepath.Join(s.dir, name+".yaml"), log: filepath.Join(s.dir, name+".log")}
	if err := os.WriteFile(d.config, []byte(config), 0o644); err != nil {
		s.t.Fatal(err)
	}
	return d
}

func (d *daemon) start() {
	d.s.t.Helper()
	log, err := os.OpenFile(d.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		d.s.t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(filepath.Join(d.bin, d.program), "run", "--config", d.config)
	if d.netns != nil {
		cmd = exec.Command("nsenter", append([]string{"--net=" + pathOf(d.netns)}, cmd.Args...)...)
	}
	if d.boot != "" {
		mount := fmt.Sprintf(`mount --bind %s /proc/sys/kernel/random/boot_id && exec "$@"`, d.boot)
		cmd = exec.Command("unshare", append([]string{"--mount", "sh", "-c", mount, "sh"}, cmd.Args...)...)
	}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = cleanEnv()
	if d.clock != nil {
		cmd.Env = append(cmd.Env, "GBATCH_DRILL_CLOCK="+d.clock.path)
	}
	if d.tracer != nil {
		d.follow(cmd)
		return
	}
	if err := startChild(cmd); err != nil {
		d.s.t.Fatalf("start %s: %v", d.name, err)
	}
	d.cmd, d.done = cmd, make(chan struct{})
	go func() { // ends with the process; stop and kill wait for it
		d.err = cmd.Wait()
		close(d.done)
	}()
}

// kill is kill -9. The process is gone when it returns.
func (d *daemon) kill() { _ = d.end(syscall.SIGKILL) }

// stop asks a daemon to end and says how it did.
func (d *daemon) stop() error { return d.end(syscall.SIGTERM) }

func (d *daemon) end(sig syscall.Signal) error {
	if d.cmd == nil {
		return nil
	}
	_ = d.cmd.Process.Signal(sig)
	select {
	case <-d.done:
	case <-time.After(patience):
		_ = d.cmd.Process.Signal(syscall.SIGQUIT) // what its goroutines do is in its log then
		select {
		case <-d.done:
		case <-time.After(10 * time.Second):
			_ = d.cmd.Process.Kill()
			<-d.done
		}
		d.err = errors.New("it did not stop; its log says what it did")
	}
	d.cmd = nil
	return d.err
}

// running says whether the process has not ended by itself.
func (d *daemon) running() bool {
	if d.cmd == nil {
		return false
	}
	select {
	case <-d.done:
		return false
	default:
		return true
	}
}

// cleanEnv is the environment without settings of whoever runs the tests.
func cleanEnv() []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "GBATCH_") && !strings.HasPrefix(kv, "XDG_") && !strings.HasPrefix(kv, "HOME=") {
			env = append(env, kv)
		}
	}
	return append(env, "HOME=/nonexistent")
}

// result is how a command did.
type result struct {
	code     int
	out, err string
}

func (r result) String() string {
	return fmt.Sprintf("exit code %d\nstdout: %s\nstderr: %s", r.code, r.out, r.err)
}

// run runs a command of the suite against the site.
func (s *site) run(name string, args ...string) result {
	return s.runInput("", name, args...)
}

func (s *site) runInput(input, name string, args ...string) result {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Env = append(cleanEnv(), "GBATCH_CONTROLLER=unix://"+s.socket())
	cmd.Stdin = strings.NewReader(input)
	return execute(cmd)
}

func execute(cmd *exec.Cmd) result {
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	r := result{out: out.String(), err: errs.String()}
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		r.code = exit.ExitCode()
	} else if err != nil {
		r.code, r.err = -1, err.Error()
	}
	return r
}

// must runs a command that has to succeed and returns its standard output.
func (s *site) must(name string, args ...string) string {
	s.t.Helper()
	r := s.run(name, args...)
	if r.code != 0 {
		s.t.Fatalf("%s %s: %v", name, strings.Join(args, " "), r)
	}
	return r.out
}
