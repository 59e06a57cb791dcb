package noded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/opencontainers/runc/libcontainer/seccomp"
	"go.uber.org/goleak"

	"gbatch/cgroups"
	"gbatch/internal/api"
	"gbatch/internal/hosttest"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/noded/config"
	"gbatch/internal/noded/devices"
	"gbatch/internal/noded/identity"
	"gbatch/oci/image/imagetest"
	"gbatch/oci/ref"
)

// testReg is an in-process registry with the test image, for the whole run.
var testReg struct {
	srv   *httptest.Server
	image string // reference of the busybox image
}

func TestMain(m *testing.M) {
	if os.Getenv(daemonEnv) != "" {
		daemonMain()
		return
	}
	if os.Geteuid() == 0 && !hosttest.Own() {
		os.Exit(hosttest.Share(3)) // they mostly wait, for containers and for deadlines
	}
	os.Exit(runAll(m))
}

func runAll(m *testing.M) int {
	if missing() == "" {
		if err := hosttest.RaiseLoopback(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		if err := startRegistry(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	before := hostMounts()
	code := m.Run()
	if testReg.srv != nil {
		testReg.srv.Close()
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if left := leftovers(before); left != "" {
		fmt.Fprintln(os.Stderr, "left on the host:\n"+left)
		return 1
	}
	return code
}

func startRegistry() error {
	testReg.srv = httptest.NewServer(registry.New(registry.Logger(nullLog())))
	testReg.image = strings.TrimPrefix(testReg.srv.URL, "http://") + "/test/busybox:1"
	img, err := imagetest.Build(imagetest.Options{Busybox: true, Layers: [][]imagetest.File{{
		{Name: "etc/passwd", Body: []byte("root:x:0:0:root:/root:/bin/sh\nbob:x:1000:1000::/home/bob:/bin/sh\n")},
		{Name: "etc/group", Body: []byte("root:x:0:\nbob:x:1000:\n")},
		{Name: "tmp/", Mode: 0o1777},
	}}})
	if err != nil {
		return err
	}
	name, _, err := ref.Parse(testReg.image)
	if err != nil {
		return err
	}
	_, err = imagetest.Push(name, img, nil)
	return err
}

// missing names what this machine lacks for tests with real containers.
func missing() string {
	switch {
	case os.Geteuid() != 0:
		return "root"
	case !seccomp.Enabled:
		return "the build tag seccomp"
	}
	if _, err := imagetest.Busybox(); err != nil {
		return "a static busybox: " + err.Error()
	}
	return ""
}

func needContainers(t testing.TB) {
	t.Helper()
	if what := missing(); what != "" {
		t.Skip("SKIPPED, no containers without " + what)
	}
}

// leftovers lists mounts, cgroups and processes that tests left behind.
func leftovers(before map[string]bool) string {
	var left []string
	for m := range hostMounts() {
		if !before[m] {
			left = append(left, "mount "+m)
		}
	}
	for _, point := range []string{"memory", "pids", "unified", ""} {
		dirs, _ := filepath.Glob(filepath.Join("/sys/fs/cgroup", point, "gbatch", testPrefix+"*", "*.*"))
		for _, d := range dirs {
			if st, err := os.Stat(d); err == nil && st.IsDir() {
				left = append(left, "cgroup "+d)
			}
		}
	}
	procs, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, p := range procs {
		b, _ := os.ReadFile(p)
		if text := strings.ReplaceAll(string(b), "\x00", " "); strings.Contains(text, " shim ") && strings.Contains(text, testPrefix) {
			left = append(left, "process "+p+" "+text)
		}
	}
	if hosttest.Own() {
		left = append(left, waitNoLinks()...)
	}
	// The nodes' own groups are ours to remove.
	for i := int64(1); i <= nodes.Load(); i++ {
		if g, err := cgroups.Find(fmt.Sprintf("/gbatch/%s%d", testPrefix, i)); err == nil {
			_ = g.Remove()
		}
		for _, dir := range []string{identity.LockRun, identity.ContactRun, identity.GuardRun} {
			_ = os.Remove(filepath.Join(dir, fmt.Sprintf("%s%d", testPrefix, i)))
		}
	}
	return strings.Join(left, "\n")
}

func hostMounts() map[string]bool {
	b, _ := os.ReadFile("/proc/self/mountinfo")
	all := map[string]bool{}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 4 && strings.Contains(f[4], testPrefix) {
			all[f[4]] = true
		}
	}
	return all
}

// Each test has a node of its own; names and directories carry the prefix.
var (
	testPrefix = fmt.Sprintf("t%d-", os.Getpid())
	nodes      atomic.Int64
)

// site is a controller with one node.
type site struct {
	*fakeController
	cfg  config.Config
	halt context.CancelFunc // stops the daemon, not its containers
	done chan struct{}
	a    *Agent

	devices devices.Devices // nil: those of the configuration
	killAt  string          // the point at which daemons that are spawned kill themselves
	onReach func(point string)
	edit    func(*Agent) // before it runs; nil: nothing
}

// shared is a directory that the users of jobs may write to.
func shared(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "shared")
	if err := errors.Join(os.Mkdir(dir, 0o777), os.Chmod(dir, 0o777)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// newSite makes the controller and the node's configuration; start runs it.
func newSite(t testing.TB, change func(*config.Config)) *site {
	needContainers(t)
	s := &site{fakeController: newFake(t)}
	name := fmt.Sprintf("%s%d", testPrefix, nodes.Add(1))
	dir := filepath.Join(t.TempDir(), name)
	s.cfg = config.Config{Name: name, Controller: s.srv.URL, StateDir: dir, Cores: 8, MinFree: 1, Launches: 2}
	s.cfg.Network.Mode = config.NetworkBridge
	s.cfg.Images.Hosts = []string{"127.0.0.1"} // where the tests' registries are
	if change != nil {
		change(&s.cfg)
	}
	s.cfg.SetDefaults()
	if err := s.cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.tidy)
	return s
}

// tidy ends what a test that failed left running, when its daemons have ended.
func (s *site) tidy() {
	if s.t.Failed() {
		s.setDown(false)
		s.start()
		defer s.halt()
		s.empty()
	}
}

// start runs the node in this process until the test ends.
func (s *site) start() *site {
	s.t.Helper()
	a, err := Open(s.cfg, Options{Log: testLog(s.t), Version: "test", Devices: s.devices, onReach: s.onReach})
	if err != nil {
		s.t.Fatal(err)
	}
	if s.edit != nil {
		s.edit(a)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.a, s.done = a, make(chan struct{})
	stopped := false
	s.halt = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		<-s.done
	}
	go func() {
		defer close(s.done)
		if err := a.Run(ctx); err != nil {
			s.t.Error(err)
		}
		if err := a.Close(); err != nil {
			s.t.Error(err)
		}
	}()
	s.t.Cleanup(s.halt)
	return s
}

// empty ends everything on the node, so that the test leaves nothing.
func (s *site) empty() {
	s.mu.Lock()
	clear(s.desired)
	s.version++
	s.touch()
	s.mu.Unlock()
	s.holdsNothing()
}

// order is a rank that runs a shell line.
func order(line string, change ...func(*api.RunOrder)) *api.RunOrder {
	o := &api.RunOrder{
		UUID: "0b5c0000-0000-4000-8000-000000000001", User: "alice", IDs: 0x20000000, Project: "proj", ProjectGID: 4242,
		Allocation: api.Allocation{CPUs: 1, MemBytes: 256 << 20}, Ranks: 1, GraceMS: 2000,
		Spec: job.Spec{Name: "test", Request: job.Request{
			Resources: job.Resources{CPUs: 1, CPUMemoryGB: 1},
			Docker:    job.Docker{Image: testReg.image, Command: job.Command{Argv: []string{"/bin/sh", "-c", line}}},
		}},
	}
	for _, c := range change {
		c(o)
	}
	return o
}

// rankID numbers ranks within a test.
func rankID(n int) job.RankID { return job.RankID{Job: job.Number(n), Attempt: 1} }

// run orders a rank, waits for its end and returns it with the output.
func (s *site) run(id job.RankID, o *api.RunOrder) (*node.Exit, string) {
	s.t.Helper()
	s.want(id, o)
	e := s.exit(id)
	out := s.output(id)
	s.drop(id)
	return e, out
}

// runNoLog is run for a rank that has no log.
func (s *site) runNoLog(id job.RankID, o *api.RunOrder) (*node.Exit, string) {
	s.t.Helper()
	s.want(id, o)
	e := s.exit(id)
	s.drop(id)
	return e, ""
}

// output is a rank's whole log.
func (s *site) output(id job.RankID) string {
	s.t.Helper()
	return s.read(api.StreamRequest{Kind: "log", Rank: id, Follow: true})
}

var streamCount atomic.Int64

func (s *site) read(req api.StreamRequest) string {
	s.t.Helper()
	return s.finish(s.open(req))
}

// open asks the node for a stream.
func (s *site) open(req api.StreamRequest) *streamBody {
	req.ID = fmt.Sprintf("s%d", streamCount.Add(1))
	return s.log(req)
}

// finish waits for a stream's end and returns all of it.
func (s *site) finish(b *streamBody) string {
	s.t.Helper()
	var text string
	until(s.t, "the end of a stream", func() bool {
		var done bool
		text, done = b.now()
		return done
	})
	return text
}

func testLog(t testing.TB) *slog.Logger {
	level := slog.LevelWarn
	if testing.Verbose() {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(logWriter{t}, &slog.HandlerOptions{Level: level}))
}

type logWriter struct{ t testing.TB }

func (w logWriter) Write(p []byte) (int, error) {
	fmt.Fprintf(os.Stderr, "%s %s %s", time.Now().Format("05.000"), w.t.Name(), p)
	return len(p), nil
}
