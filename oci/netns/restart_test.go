package netns

import (
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// What a second daemon finds: networks of the first go on, with their
// addresses, and can be swept.
func TestRestart(t *testing.T) {
	out := outside(t)
	first := openNetwork(t, Config{})
	kept, dropped := attach(t, first, "kept"), attach(t, first, "dropped")
	first.Close()

	second := openNetwork(t, Config{})
	second.Keep("kept", "", nil, nil)
	removed, err := second.Sweep()
	must(t, err)
	if diff := cmp.Diff([]string{"dropped"}, removed); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}
	l := listenIn(t, out, "0.0.0.0:0")
	serveName(l, "outside")
	if _, err := ask(kept.Namespace, netip.AddrPortFrom(outsideAddr, portOf(l))); err != nil {
		t.Errorf("kept network: %v", err)
	}
	third := attach(t, second, "third")
	if third.Addr == kept.Addr || third.Addr == dropped.Addr {
		t.Errorf("%s was given again at once", third.Addr)
	}
	must(t, second.Detach("kept"))
	if got := ours(t); len(got) != 1 {
		t.Errorf("left: %v", got)
	}
}

// steps are those of an Attach; a test holds that there are no others.
var steps = []string{"link", "alias", "up", "gateway", "route", "inner", "done"}

func TestSteps(t *testing.T) {
	n := openNetwork(t, Config{})
	var got []string
	n.trace = func(step string) { got = append(got, step) }
	attach(t, n, "job")
	if diff := cmp.Diff(steps, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestNobodyWaitsForAnAttach: while a network is made, others are made, given and taken away.
func TestNobodyWaitsForAnAttach(t *testing.T) {
	n := openNetwork(t, Config{})
	attach(t, n, "ready")
	for _, at := range steps[:len(steps)-2] { // what is after that was never waited for
		n.trace = func(step string) {
			if step != at {
				return
			}
			n.trace = func(string) {}
			done := make(chan error, 1)
			go func() {
				_, err := n.Ensure()
				n.Give("ready", "taken")
				n.Give("taken", "ready")
				a, errAttach := n.Attach("beside", nil, nil)
				if errAttach == nil {
					a.Namespace.Close()
				}
				done <- errors.Join(err, errAttach, n.Mark("ready"), n.Detach("beside"))
			}()
			select {
			case err := <-done:
				must(t, err)
			case <-time.After(time.Minute):
				t.Fatalf("others wait for a network that is before its step %q", step)
			}
		}
		attach(t, n, "slow-"+at)
	}
}

// crashHere is the life of a daemon that is killed before a step.
func crashHere(at string) {
	n, err := Open(Config{Node: testNode})
	if err != nil {
		return
	}
	n.trace = func(step string) {
		if step == at {
			_ = unix.Kill(unix.Getpid(), unix.SIGKILL)
			select {}
		}
	}
	_, _ = n.Attach("crashed", nil, nil)
}

func TestSweepAfterKill(t *testing.T) {
	needNetwork(t)
	for _, step := range steps {
		t.Run(step, func(t *testing.T) {
			cmd := exec.Command("/proc/self/exe")
			cmd.Env = append(os.Environ(), crashEnv+"="+step)
			err := cmd.Run()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != unix.SIGKILL {
				t.Fatalf("the daemon was not killed: %v", err)
			}
			n := openNetwork(t, Config{})
			if _, err := n.Sweep(); err != nil {
				t.Fatal(err)
			}
			if got := ours(t); got != nil {
				t.Errorf("left: %v", got)
			}
			attach(t, n, "crashed")
		})
	}
}

// Without a sweep the kernel takes away what nobody holds any more.
func TestNothingHeldNothingLeft(t *testing.T) {
	n := openNetwork(t, Config{})
	a, err := n.Attach("job", nil, nil)
	must(t, err)
	a.Namespace.Close()
	eventually(t, "the interface goes with its namespace", func() bool { return ours(t) == nil })
	must(t, n.Detach("job"))
}
