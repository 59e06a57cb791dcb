// Package hosttest shares the tests of a package among processes, each in a network
// namespace of its own, which is the machine's to it: what tests do to the network
// concerns neither this machine nor the others. It gives tests ports that nobody else is given. It is no part of any program.
package hosttest

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// ownEnv marks the test binary that runs in such a namespace.
const ownEnv = "GBATCH_TEST_OWN_HOST"

// Own says whether this process has a network of its own.
func Own() bool { return os.Getenv(ownEnv) != "" }

// RaiseLoopback is what each of the processes begins with.
func RaiseLoopback() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(lo)
}

// Share starts this program again, as many times as given, for what TestMain would run, and
// returns the exit code of one that failed. Who chooses tests, or wants more of them than
// their results, has them all in one process; who only leaves some out has them shared.
func Share(processes int) int {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) {
		chosen = chosen || slices.Contains([]string{"test.run", "test.bench", "test.fuzz", "test.list"}, f.Name) || strings.HasSuffix(f.Name, "profile")
	})
	if chosen {
		return wait(start(os.Args[1:], os.Stdout))
	}
	list, err := exec.Command("/proc/self/exe", "-test.list=^Test").Output()
	if err != nil {
		fmt.Fprintln(os.Stderr, "list the tests:", err)
		return 1
	}
	shares := make([][]string, processes)
	for i, test := range strings.Fields(string(list)) {
		shares[i%processes] = append(shares[i%processes], test)
	}
	// What the first says is seen at once, what the others say when they have ended. The log
	// of the files that were read is for one process: without it, go test keeps no result.
	args := slices.DeleteFunc(slices.Clone(os.Args[1:]), func(arg string) bool { return strings.HasPrefix(arg, "-test.testlogfile") })
	cmds := make([]*exec.Cmd, processes)
	said := make([]bytes.Buffer, processes)
	for i, tests := range shares {
		out := io.Writer(&said[i])
		if i == 0 {
			out = os.Stdout
		}
		cmds[i] = start(append(slices.Clone(args), "-test.run=^("+strings.Join(tests, "|")+")$"), out)
	}
	code := 0
	for i, cmd := range cmds {
		code = max(code, wait(cmd))
		_, _ = said[i].WriteTo(os.Stdout)
	}
	return code
}

// start starts this program again; nil: it could not.
func start(args []string, out io.Writer) *exec.Cmd {
	runtime.LockOSThread() // the child ends with the thread
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), ownEnv+"=1")
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "make a network namespace for the tests:", err)
		return nil
	}
	return cmd
}

func wait(cmd *exec.Cmd) int {
	if cmd == nil {
		return 1
	}
	if err := cmd.Wait(); err != nil && cmd.ProcessState.Success() {
		fmt.Fprintln(os.Stderr, "read what tests say:", err)
		return 1
	}
	if code := cmd.ProcessState.ExitCode(); code >= 0 {
		return code
	}
	return 1 // by a signal
}
