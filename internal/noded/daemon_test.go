package noded

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gbatch/cgroups"
	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/noded/config"
	"gbatch/internal/noded/identity"
	"gbatch/oci/atomicfile"
	"gbatch/oci/result"
)

// daemonEnv makes the test binary play a daemon that can be killed; its value
// is the configuration.
const daemonEnv = "GBATCH_TEST_NODED"

func daemonMain() {
	var cfg config.Config
	text, err := base64.StdEncoding.DecodeString(os.Getenv(daemonEnv))
	if err == nil {
		err = gob.NewDecoder(bytes.NewReader(text)).Decode(&cfg)
	}
	if err != nil {
		panic(err)
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	a, err := Open(cfg, Options{Log: log, Version: "test", onReach: killAt(os.Getenv(killEnv))})
	if err != nil {
		log.Error("open", "error", err)
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	fmt.Println("up")
	if err := a.Run(ctx); err != nil {
		log.Error("run", "error", err)
	}
	_ = a.Close()
}

func nullLog() *log.Logger { return log.New(io.Discard, "", 0) }

// process is a daemon of its own.
type process struct {
	t   testing.TB
	cmd *exec.Cmd
	log string
}

// spawn starts a daemon process for the site.
func (s *site) spawn(n int) *process {
	s.t.Helper()
	var cfg bytes.Buffer // as it is, and not as people write it
	if err := gob.NewEncoder(&cfg).Encode(s.cfg); err != nil {
		s.t.Fatal(err)
	}
	p := &process{t: s.t, log: filepath.Join(filepath.Dir(s.cfg.StateDir), fmt.Sprintf("log%d", n))}
	out, err := os.Create(p.log)
	if err != nil {
		s.t.Fatal(err)
	}
	defer out.Close()
	p.cmd = exec.Command("/proc/self/exe")
	// With the race detector a program sleeps at its end, for a second by default.
	p.cmd.Env = append(os.Environ(), daemonEnv+"="+base64.StdEncoding.EncodeToString(cfg.Bytes()), killEnv+"="+s.killAt, "GORACE=atexit_sleep_ms=0")
	p.cmd.Stderr = out
	if err := p.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(p.kill)
	return p
}

// kill ends the daemon with no chance to do anything.
func (p *process) kill() {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	}
}

// term asks it to stop and waits until it has.
func (p *process) term() {
	p.t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("daemon: %v\n%s", err, p.text())
	}
}

func (p *process) text() string {
	b, _ := os.ReadFile(p.log)
	return string(b)
}

// TestKilledDaemon kills the daemon at random moments while jobs start, run
// and end, and looks at what each job itself wrote: every job runs exactly
// once, to its end, and is told so; nothing is left. A run prints its
// seed; GBATCH_SEED repeats it, GBATCH_KILLS sets how many kills.
func TestKilledDaemon(t *testing.T) {
	killing(t, nil, func(n int, e *node.Exit, wrote string) bool {
		return e.Code == n%200 && wrote == fmt.Sprintf("begin %d\nend %d\n", n, n)
	})
}

// TestKilledShims kills shims too. Then a job's end may be unknown, but none
// begins twice, and one whose end is told as its own did end.
func TestKilledShims(t *testing.T) {
	kill := func(s *site, rng *rand.Rand) {
		if list := shims(s.cfg.StateDir); len(list) > 0 {
			_ = syscall.Kill(list[rng.IntN(len(list))], syscall.SIGKILL)
		}
	}
	killing(t, kill, func(n int, e *node.Exit, wrote string) bool {
		begin := fmt.Sprintf("begin %d\n", n)
		whole := begin + fmt.Sprintf("end %d\n", n)
		if e.Reason == job.NodeFail || e.Reason == job.Server {
			return wrote == "" || wrote == begin || wrote == whole
		}
		return e.Code == n%200 && wrote == whole
	})
}

// killing orders jobs and kills the daemon in rounds, and asks good about each
// job's end and what it wrote. more is done before each kill.
func killing(t *testing.T, more func(*site, *rand.Rand), good func(n int, e *node.Exit, wrote string) bool) {
	seed, rounds := killPlan(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	witness := shared(t)
	s := newSite(t, func(c *config.Config) {
		c.Cores = 64
		c.Storage = []config.StorageRoot{{Name: "/witness", Path: witness}}
	})
	next := 1
	for round := range rounds {
		p := s.spawn(round)
		for range 1 + rng.IntN(4) {
			s.want(rankID(next), witnessOrder(rng.IntN(300)))
			next++
		}
		moment := time.Duration(rng.IntN(150_000)) * time.Microsecond
		began := time.Now()
		until(t, "the moment to kill", func() bool { return time.Since(began) > moment })
		if more != nil {
			more(s, rng)
		}
		p.kill()
	}
	last := s.spawn(rounds)
	known := 0
	for n := 1; n < next; n++ {
		e := s.exit(rankID(n))
		wrote, _ := os.ReadFile(filepath.Join(witness, fmt.Sprint(n)))
		if !good(n, e, string(wrote)) {
			t.Errorf("rank %d: %+v, and it wrote %q", n, e, wrote)
		}
		if e.Reason == job.ExitCode || e.Reason == job.None {
			known++
		}
	}
	t.Logf("%d jobs, %d kills, %d ended by themselves", next-1, rounds, known)
	s.empty()
	last.term()
	if t.Failed() {
		for i := range rounds + 1 {
			b, _ := os.ReadFile(filepath.Join(filepath.Dir(s.cfg.StateDir), fmt.Sprintf("log%d", i)))
			t.Logf("daemon %d:\n%s", i, b)
		}
	}
}

// killPlan is the seed and how many kills, from the environment or by default.
func killPlan(t *testing.T) (seed uint64, rounds int) {
	seed, rounds = uint64(time.Now().UnixNano()), 12
	for name, to := range map[string]any{"GBATCH_SEED": &seed, "GBATCH_KILLS": &rounds} {
		if text := os.Getenv(name); text != "" {
			if _, err := fmt.Sscan(text, to); err != nil {
				t.Fatalf("%s=%q: %v", name, text, err)
			}
		}
	}
	t.Logf("GBATCH_SEED=%d", seed)
	return seed, rounds
}

// witnessOrder is a job that writes down that it began and ended, in between
// waiting for some milliseconds.
func witnessOrder(ms int) *api.RunOrder {
	line := fmt.Sprintf("n=$GBATCH_JOB_NUMBER; echo begin $n >> /w/$n; usleep %d; echo end $n >> /w/$n; exit $((n %% 200))", ms*1000)
	return order(line, func(o *api.RunOrder) {
		o.Spec.Request.Docker.Storage = []job.Storage{{HostPath: "/witness", ContainerPath: "/w"}}
	})
}

// TestTerm: a daemon that is told to stop leaves its containers, and the next
// one finds them with the right result.
func TestTerm(t *testing.T) {
	s := newSite(t, nil)
	p := s.spawn(0)
	running, ending := rankID(1), rankID(2)
	s.want(running, order(patient))
	s.want(ending, order("echo ready; sleep 0.3; exit 6"))
	s.ready(running)
	s.ready(ending)
	p.term()
	exits := filepath.Join(s.cfg.StateDir, "ranks", ending.String(), "box", "exit.json")
	until(t, "the rank to end without a daemon", func() bool {
		_, err := os.Stat(exits)
		return err == nil
	})
	p = s.spawn(1)
	if e := s.exit(ending); e.Code != 6 {
		t.Errorf("ended meanwhile: %+v", e)
	}
	s.stop(running, api.Stop{Signal: "TERM", GraceMS: 20_000, Reason: job.ByUser, Text: "enough"})
	if e := s.exit(running); e.Code != 9 || e.Reason != job.ByUser {
		t.Errorf("still running: %+v", e)
	}
	s.empty()
	p.term()
}

// TestLostShim: a container whose shim was killed is ended and told as the
// node's fault, both while a daemon looks and while none does.
func TestLostShim(t *testing.T) {
	for _, alive := range []bool{true, false} {
		t.Run(fmt.Sprintf("daemon=%t", alive), func(t *testing.T) {
			s := newSite(t, nil)
			p := s.spawn(0)
			id := rankID(1)
			s.want(id, order(patient))
			s.ready(id)
			if !alive {
				p.kill()
			}
			killShim(t, s.cfg.StateDir)
			if !alive {
				p = s.spawn(1)
			}
			if e := s.exit(id); e.Reason != job.NodeFail || !strings.Contains(e.Message, "lost track") || e.StartedMS == 0 {
				t.Errorf("exit %+v", e)
			}
			s.empty()
			p.term()
		})
	}
}

// TestUnknown: a rank of which it cannot be told whether it lives is held and
// not run again, until that can be told.
func TestUnknown(t *testing.T) {
	s := newSite(t, nil).start()
	id := rankID(1)
	s.want(id, order(patient))
	s.ready(id)
	s.halt()
	killShim(t, s.cfg.StateDir)
	// Who holds the lock and does not answer looks like a shim that hangs.
	held := s.lockDead(id)
	s.start()
	s.await("the node to hold the rank and say what is wrong", func() bool {
		return len(s.last.Unhealthy) == 1 && strings.Contains(s.last.Unhealthy[0], "its shim lives but does not answer") &&
			len(s.last.Ranks) == 1 && s.last.Ranks[0].Phase == node.PhaseRunning
	})
	held.Close()
	if e := s.exit(id); e.Reason != job.NodeFail {
		t.Errorf("exit %+v", e)
	}
	s.empty()
	if list := s.unhealthy(); len(list) > 0 {
		t.Errorf("still unhealthy: %v", list)
	}
}

// TestPowerCut: after a restart of the machine a rank that left unreadable
// files is told as the node's fault, and does not run again.
func TestPowerCut(t *testing.T) {
	for name, ended := range map[string]bool{"while it ran": false, "when it had ended": true} {
		t.Run(name, func(t *testing.T) { powerCut(t, ended) })
	}
}

func powerCut(t *testing.T, ended bool) {
	s := newSite(t, nil).start()
	id := rankID(1)
	s.want(id, order(patient))
	s.ready(id)
	s.halt()
	killShim(t, s.cfg.StateDir)
	dir := s.a.node.Dir(id)
	s.lockDead(id).Close()
	until(t, "the container's end", func() bool {
		g, err := cgroups.Find(s.a.host.CgroupPath(id))
		return err == nil && g.Kill(time.Second) == nil && g.Remove() == nil
	})
	for _, name := range []string{"shim.json", "config.json"} {
		if err := os.Truncate(filepath.Join(dir, "box", name), 0); err != nil {
			t.Fatal(err)
		}
	}
	if ended {
		if err := result.Write(filepath.Join(dir, "box"), result.Exit{Code: 3, Started: time.Now(), Finished: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	var rec map[string]any
	readJSON(t, filepath.Join(dir, "rank.json"), &rec)
	rec["boot"] = "another"
	if err := os.WriteFile(filepath.Join(dir, "rank.json"), []byte(toJSON(rec)), 0o600); err != nil {
		t.Fatal(err)
	}
	s.start()
	if e := s.exit(id); ended && e.Code != 3 || !ended && (e.Reason != job.NodeFail || !strings.HasPrefix(e.Message, "the machine restarted")) {
		t.Errorf("exit %+v", e)
	}
	s.empty()
	if list := s.unhealthy(); len(list) > 0 {
		t.Errorf("unhealthy: %v", list)
	}
}

func readJSON(t testing.TB, path string, to any) {
	t.Helper()
	b, err := atomicfile.Read(path)
	if err == nil {
		err = json.Unmarshal(b, to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func killShim(t *testing.T, dir string) {
	list := shims(dir)
	if len(list) == 0 {
		t.Fatal("no shim found")
	}
	if err := syscall.Kill(list[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// lockDead waits for the death of a rank's shim, which a kill does not, and
// takes its lock.
func (s *site) lockDead(id job.RankID) (held *identity.Lock) {
	s.t.Helper()
	until(s.t, "the shim's death", func() (ok bool) {
		var err error
		held, err = identity.TakeLock(filepath.Join(s.cfg.StateDir, "ranks", id.String(), "box", "lock"), "the container")
		return err == nil
	})
	return held
}

// shims lists the shims that have a container below dir: they are in its
// directory. One that waits for a container is nowhere.
func shims(dir string) []int {
	var list []int
	procs, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, p := range procs {
		b, _ := os.ReadFile(p)
		cwd, _ := os.Readlink(filepath.Join(filepath.Dir(p), "cwd"))
		var pid int
		if _, err := fmt.Sscanf(p, "/proc/%d/", &pid); err == nil && strings.Contains(string(b), "\x00shim\x00") && strings.HasPrefix(cwd, dir) {
			list = append(list, pid)
		}
	}
	return list
}

// TestLocks: one daemon to a directory, also where somebody has removed its locks, and to a name.
func TestLocks(t *testing.T) {
	s := newSite(t, nil).start()
	other := s.cfg
	if _, err := Open(other, Options{Log: testLog(t)}); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("another gnoded (pid %d) uses state directory", os.Getpid())) {
		t.Errorf("same directory: %v", err)
	}
	if err := errors.Join(os.Remove(filepath.Join(other.StateDir, "lock")), os.Remove(filepath.Join(identity.LockRun, other.Name))); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(other, Options{Log: testLog(t)}); err == nil || !strings.Contains(err.Error(), "another gnoded uses state directory") {
		t.Errorf("same directory, without its locks: %v", err)
	}
	s.halt()
	s.start()
	other.StateDir = t.TempDir()
	if _, err := Open(other, Options{Log: testLog(t)}); err == nil || !strings.Contains(err.Error(), "uses node name "+other.Name) {
		t.Errorf("same name: %v", err)
	}
}

// TestInstance: the id stays with the directory and is new with a new one.
func TestInstance(t *testing.T) {
	s := newSite(t, nil).start()
	s.await("a sync", func() bool { return s.last.Instance != "" })
	first := s.a.instance
	s.halt()
	s.start()
	if s.a.instance != first {
		t.Errorf("instance changed from %s to %s", first, s.a.instance)
	}
	s.halt()
	if err := os.RemoveAll(s.cfg.StateDir); err != nil {
		t.Fatal(err)
	}
	s.start()
	if s.a.instance == first {
		t.Error("a new directory has the old instance")
	}
}

// TestGroupsGo: a daemon that stops without jobs leaves no control group.
func TestGroupsGo(t *testing.T) {
	s := newSite(t, nil).start()
	s.run(rankID(1), order("true"))
	s.holdsNothing()
	g, err := cgroups.Find("/gbatch/" + s.cfg.Name)
	if err != nil || !g.Exists() {
		t.Fatalf("the node has no group: %v", err)
	}
	s.halt()
	if g.Exists() {
		t.Error("the group of the node is still there")
	}
}
