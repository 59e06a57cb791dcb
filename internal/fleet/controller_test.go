package fleet

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"gbatch/internal/client"
	"gbatch/internal/hosttest"
)

// patience is for what should take well under a second.
const patience = 60 * time.Second

// controller is gctld as a process, which may be killed and started again.
type controller struct {
	t      *testing.T
	bin    string
	dir    string
	cmd    *exec.Cmd
	ended  chan struct{} // closed when cmd has
	cpu    time.Duration // of processes that have ended
	memory int           // the most that one has had in memory, in KiB
}

// unbounded has one user, who asks for all here, not be held back: of what one may ask for in a second that would be
// the measure.
const unbounded = "limits: {perUser: {jobs: 1000000, storedMiBPerDay: -1, changesPerSecond: -1}}\n"

// newController starts a controller that is alone.
func newController(t *testing.T, nodes int) *controller {
	t.Helper()
	c := configured(t, buildController(t), nodes, freeAddresses(t, 1)[0], unbounded)
	c.start()
	return c
}

// buildController builds gctld, unless it is built.
func buildController(t *testing.T) (bin string) {
	t.Helper()
	if dir := os.Getenv("GBATCH_BIN"); dir != "" {
		return filepath.Join(dir, "gctld")
	}
	bin = filepath.Join(t.TempDir(), "gctld")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", bin, "gbatch/cmd/gctld")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build gctld: %v\n%s", err, out)
	}
	return bin
}

// configured is a controller that has its configuration, to which more is added.
func configured(t *testing.T, bin string, nodes int, listen, more string) *controller {
	t.Helper()
	c := &controller{t: t, bin: bin, dir: t.TempDir()}
	config := fmt.Sprintf("dir: %s/ctld\nsocket: %s\nlisten: %s\nreserveMiB: 64\nconnections: {perAddress: %d}\n%s", c.dir, c.socket(), listen, 256+2*nodes, more)
	if err := os.WriteFile(c.config(), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.kill() })
	return c
}

// freeAddresses are for controllers, which find theirs free when they are started again.
func freeAddresses(t *testing.T, n int) []string {
	t.Helper()
	list := make([]string, n)
	for i := range list {
		var err error
		if list[i], err = hosttest.FreeAddress(); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

func (c *controller) config() string { return filepath.Join(c.dir, "gctld.yaml") }
func (c *controller) socket() string { return filepath.Join(c.dir, "s") }
func (c *controller) log() string    { return filepath.Join(c.dir, "log") }

// launch starts it.
func (c *controller) launch() {
	c.t.Helper()
	log, err := os.Create(c.log())
	if err != nil {
		c.t.Fatal(err)
	}
	defer log.Close()
	c.cmd, c.ended = exec.Command(c.bin, "run", "--config", c.config()), make(chan struct{})
	c.cmd.Stdout, c.cmd.Stderr = log, log
	if err := c.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	go func(cmd *exec.Cmd, ended chan struct{}) { // ends with the process
		_ = cmd.Wait()
		close(ended)
	}(c.cmd, c.ended)
}

// start starts it and waits until it answers.
func (c *controller) start() {
	c.t.Helper()
	c.launch()
	local := &client.Client{Address: "unix://" + c.socket()}
	defer local.Close()
	eventually(c.t, "the controller answers", func() bool {
		select {
		case <-c.ended:
			text, _ := os.ReadFile(c.log())
			c.t.Fatalf("the controller has ended:\n%s", text)
		default:
		}
		_, err := local.Status(c.t.Context())
		return err == nil
	})
}

// kill ends it at once, and adds up what it took.
func (c *controller) kill() {
	if c.cmd == nil || c.cmd.Process == nil {
		return // it was never started
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	if _, after, found := strings.Cut(string(status), "VmHWM:"); err == nil && found {
		kib, _ := strconv.Atoi(strings.Fields(after)[0])
		c.memory = max(c.memory, kib)
	}
	select {
	case <-c.ended:
		return
	default:
	}
	_ = c.cmd.Process.Kill()
	<-c.ended
	c.cpu += c.cmd.ProcessState.UserTime() + c.cmd.ProcessState.SystemTime()
}

var remote = regexp.MustCompile(`https://[^\s"]+#[^\s"]+`)

// address is where nodes and users find it.
func (c *controller) address() string {
	c.t.Helper()
	var found string
	eventually(c.t, "the controller says where it listens", func() bool {
		text, err := os.ReadFile(c.log())
		found = remote.FindString(string(text))
		return err == nil && found != ""
	})
	return found
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	waitWithin(t, patience, what, ok)
}

func waitWithin(t *testing.T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v in vain until %s", limit, what)
		}
	}
}
