package oci_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"gbatch/cgroups"
	"gbatch/oci"
	"gbatch/oci/draft"
	"gbatch/oci/failure"
	"gbatch/oci/runtimes"
	"gbatch/oci/userns"
	"gbatch/oci/wire"
)

// eachRuntime runs a test with each runtime that this machine has.
func eachRuntime(t *testing.T, test func(t *testing.T, r *runtimes.Runtime)) {
	needContainers(t)
	for _, kind := range runtimes.Kinds {
		t.Run(string(kind), func(t *testing.T) {
			path, err := exec.LookPath(string(kind))
			if err != nil {
				t.Skipf("SKIPPED, this machine has no %s", kind)
			}
			r, err := runtimes.Find(path, nil)
			if err != nil || r.Kind != kind {
				t.Fatalf("%s is %q, %v", path, r.Kind, err)
			}
			test(t, &r)
		})
	}
}

// newForeign describes a container of alice's that another runtime runs.
func newForeign(t *testing.T, r *runtimes.Runtime, script string) *box {
	t.Helper()
	b := newMapped(t, script)
	b.cfg.Runtime = r
	b.req.Limits = cgroups.Limits{MemoryBytes: 512 << 20, Pids: 200}
	return b
}

// TestForeignInside: what a program finds in its container is what it finds with
// libcontainer, and what it leaves outside is its user's.
func TestForeignInside(t *testing.T) {
	eachRuntime(t, func(t *testing.T, r *runtimes.Runtime) {
		dir := share(t, os.ModeSetgid|0o777, 0, 2001)
		data := share(t, 0o755, 0, 0)
		b := newForeign(t, r, `id; echo $SECRET; pwd; echo a >/s/root; su bob -c 'echo b >/s/bob'; echo x >/ro/x; echo w >/home/written
			stat -c %u:%g /bin/busybox /home/bob; df -m /dev/shm | tail -1 | awk '{print $2}'; mknod /s/node c 1 3 2>/dev/null || echo no node; exit 7`)
		b.req.Mounts = []draft.Mount{{Source: dir, Target: "/s"}, {Source: data, Target: "/ro", ReadOnly: true}}
		b.req.ShmBytes, b.req.WorkDir = 24<<20, "/made/here"
		b.hand.Env = []string{"SECRET=hidden"}
		exit, log := b.run()
		want := "uid=0(root) gid=0(root) groups=2001\nhidden\n/made/here\n/bin/sh: can't create /ro/x: Read-only file system\n0:0\n1000:1000\n24\nno node\n"
		if diff := cmp.Diff(want, strings.ReplaceAll(log, "groups=0(root),2001", "groups=2001")); diff != "" || exit.Code != 7 || exit.Failure != nil {
			t.Errorf("exit %+v, output (-want +got):\n%s", exit, diff)
		}
		if exit.CPUNanos == 0 || exit.PeakBytes == 0 || exit.LogBytes != int64(len(log)) {
			t.Errorf("exit %+v", exit)
		}
		for name, want := range map[string]string{"root": "1003:2001 -rw-r--r--", "bob": "536871912:2001 -rw-r--r--"} {
			if got := owned(t, filepath.Join(dir, name)); got != want {
				t.Errorf("%s is %s, want %s", name, got, want)
			}
		}
		upper, err := oci.Written(b.dir)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(filepath.Join(upper, "home/written")); err != nil || string(text) != "w\n" {
			t.Errorf("written over the image: %q, %v", text, err)
		}
		for _, name := range []string{"config.json", "shim.json", "state/config.json"} {
			if text, _ := os.ReadFile(filepath.Join(b.dir, name)); strings.Contains(string(text), "hidden") {
				t.Errorf("the secret is in %s", name)
			}
		}
	})
}

// TestForeignLimits looks at what the kernel holds the container to, before and
// after a change, and at a pause.
func TestForeignLimits(t *testing.T) {
	eachRuntime(t, func(t *testing.T, r *runtimes.Runtime) {
		b := newForeign(t, r, "echo ready; i=0; while :; do i=$((i+1)); done")
		b.req.Limits.CPUs = cgroups.NewCPUSet(0)
		s := b.start()
		b.await("ready")
		check := func(memory, cpus string) {
			t.Helper()
			for name, want := range map[string]string{"memory": memory, "pids": "200", "cpuset": cpus} {
				file := map[string]string{"memory": "memory.limit_in_bytes", "pids": "pids.max", "cpuset": "cpuset.cpus"}[name]
				got, err := os.ReadFile(filepath.Join("/sys/fs/cgroup", name, b.req.CgroupPath, file))
				if errors.Is(err, os.ErrNotExist) {
					file = map[string]string{"memory": "memory.max", "pids": "pids.max", "cpuset": "cpuset.cpus"}[name]
					got, err = os.ReadFile(filepath.Join("/sys/fs/cgroup", b.req.CgroupPath, file))
				}
				if strings.TrimSpace(string(got)) != want || err != nil {
					t.Errorf("%s is %q, %v, want %s", file, got, err, want)
				}
			}
		}
		check("536870912", "0")
		if err := s.Update(cgroups.Limits{MemoryBytes: 300 << 20, CPUs: cgroups.NewCPUSet(0, 1)}); err != nil {
			t.Fatal(err)
		}
		check("314572800", "0-1")
		if err := s.Stand(true); err != nil {
			t.Fatal(err)
		}
		used := func() uint64 {
			st, err := s.Stats()
			if err != nil {
				t.Fatal(err)
			}
			return st.CPUNanos
		}
		// A sandbox goes on a little for itself, and a loop would use all of the time.
		last, still := used(), 0
		poll(t, "standstill", func() bool {
			now := used()
			if still++; now-last > uint64(time.Millisecond) {
				still = 0
			}
			last = now
			return still == 20
		})
		if err := s.Stand(false); err != nil {
			t.Fatal(err)
		}
		before := used()
		poll(t, "work after the pause", func() bool { return used() > before+uint64(50*time.Millisecond) })
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
		if exit := b.exit(); !exit.Stopped || exit.Signal != 9 {
			t.Errorf("exit %+v", exit)
		}
	})
}

func TestForeignOOM(t *testing.T) {
	eachRuntime(t, func(t *testing.T, r *runtimes.Runtime) {
		b := newForeign(t, r, "tail /dev/zero & sleep 1000; exit 0")
		b.req.Limits.MemoryBytes = 128 << 20
		exit, log := b.run()
		if !exit.OOMKilled || exit.Code == 0 || exit.Failure != nil {
			t.Errorf("exit %+v, %v, output %s", exit, exit.Failure, log)
		}
	})
}

// TestForeignStop: a program is asked by the signal, and those that take none are
// killed.
func TestForeignStop(t *testing.T) {
	eachRuntime(t, func(t *testing.T, r *runtimes.Runtime) {
		b := newForeign(t, r, `trap 'echo asked; exit 9' TERM; trap 'echo told' USR1; echo ready; while :; do sleep 0.1; done`)
		s := b.start()
		b.await("ready")
		if err := s.Signal(syscall.SIGUSR1); err != nil {
			t.Fatal(err)
		}
		b.await("told")
		if err := s.Stop(context.Background(), syscall.SIGTERM, patience); err != nil {
			t.Fatal(err)
		}
		// Where the node sees the processes the sleep is asked too, and the shell may say so.
		exit := b.exit()
		if log := b.log(); exit.Code != 9 || !exit.Stopped || !strings.HasPrefix(log, "ready\ntold\n") || !strings.HasSuffix(log, "asked\n") {
			t.Errorf("exit %+v, output %q", exit, b.log())
		}
	})
}

func TestForeignExec(t *testing.T) {
	eachRuntime(t, func(t *testing.T, r *runtimes.Runtime) {
		b := newForeign(t, r, "echo ready; sleep 1000")
		b.req.Env = []string{"OUTER=1"}
		s := b.start()
		b.await("ready")
		out, code := execOutput(t, s, wire.ExecRequest{Args: []string{"sh", "-c", "echo $OUTER$INNER; pwd; id -un; exit 6"}, Env: []string{"INNER=2"}, WorkDir: "/work"})
		if out != "12\n/work\nroot\n" || code != 6 {
			t.Errorf("output %q, code %d", out, code)
		}
		out, _ = execOutput(t, s, wire.ExecRequest{Args: []string{"sh", "-c", "id -un; echo $HOME; ps | grep -c sleep"}, User: "bob"})
		if !strings.HasPrefix(out, "bob\n/home/bob\n") {
			t.Errorf("as bob: %q", out)
		}
		if _, code = execOutput(t, s, wire.ExecRequest{Args: []string{"sh", "-c", "kill -9 $$"}}); code != 137 {
			t.Errorf("killed: code %d", code)
		}
		var f *failure.Failure
		if _, err := s.Exec(wire.ExecRequest{Args: []string{"missing"}}, wire.ExecStdio{}); !errors.As(err, &f) || f.Kind != failure.CommandNotFound {
			t.Errorf("a missing command: %v", err)
		}

		p, err := s.Exec(wire.ExecRequest{Args: []string{"sh", "-c", "tty; stty size; read x; echo got $x; stty size; exit 3"}, Terminal: true, Width: 90, Height: 30}, wire.ExecStdio{})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Resize(100, 40); err != nil {
			t.Error(err)
		}
		if _, err := p.Terminal.WriteString("word\n"); err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(p.Terminal) // it ends with an error
		if code, err := p.Wait(); code != 3 || err != nil || !strings.Contains(string(text), "got word\r\n40 100\r\n") {
			t.Errorf("terminal: code %d, %v, %q", code, err, text)
		}

		// A client that goes takes its command with it.
		if p, err = s.Exec(wire.ExecRequest{Args: []string{"sh", "-c", "trap 'echo hung >/hung; exit' HUP; touch /begun; while :; do sleep 0.1; done"}}, wire.ExecStdio{}); err != nil {
			t.Fatal(err)
		}
		upper, err := oci.Written(b.dir)
		if err != nil {
			t.Fatal(err)
		}
		poll(t, "a command", func() bool { _, err := os.Stat(upper + "/begun"); return err == nil })
		p.Close()
		poll(t, "a command that hung up", func() bool { _, err := os.Stat(upper + "/hung"); return err == nil })
	})
}

func TestForeignTerminal(t *testing.T) {
	eachRuntime(t, func(t *testing.T, r *runtimes.Runtime) {
		b := newForeign(t, r, "tty; stty size; read x; echo got $x; exit 4")
		b.req.Terminal = true
		s := b.start()
		b.await("24 80")
		terminal, err := s.Terminal()
		if err != nil {
			t.Fatal(err)
		}
		defer terminal.Close()
		if _, err := terminal.WriteString("word\n"); err != nil {
			t.Fatal(err)
		}
		if exit := b.exit(); exit.Code != 4 || !strings.Contains(b.log(), "got word\r\n") {
			t.Errorf("exit %+v, output %q", exit, b.log())
		}
	})
}

// TestForeignFailures: what is the job's fault is told as that.
func TestForeignFailures(t *testing.T) {
	eachRuntime(t, func(t *testing.T, r *runtimes.Runtime) {
		for name, tc := range map[string]struct {
			edit func(*draft.Request)
			kind failure.Kind
			code int
		}{
			"missing":    {func(q *draft.Request) { q.Command = []string{"no-such"} }, failure.CommandNotFound, 127},
			"path":       {func(q *draft.Request) { q.Command = []string{"/no/such"} }, failure.CommandNotFound, 127},
			"directory":  {func(q *draft.Request) { q.Command = []string{"/home"} }, failure.CommandNotRunable, 126},
			"executable": {func(q *draft.Request) { q.Command = []string{"/etc/passwd"} }, failure.CommandNotRunable, 126},
			"workdir":    {func(q *draft.Request) { q.WorkDir = "/etc/passwd" }, failure.WorkDirMissing, 125},
			"user":       {func(q *draft.Request) { q.User = "nobody-here" }, failure.UserUnknown, 125},
			"on a file":  {func(q *draft.Request) { q.Mounts = []draft.Mount{{Source: "/usr", Target: "/etc/passwd/x"}} }, failure.MountFailed, 125},
		} {
			t.Run(name, func(t *testing.T) {
				b := newForeign(t, r, "echo ran")
				tc.edit(&b.req)
				exit, log := b.run()
				if exit.Failure == nil || exit.Failure.Kind != tc.kind || exit.Code != tc.code || strings.Contains(log, "ran\n") {
					t.Errorf("exit %+v: %+v, output %q", exit, exit.Failure, log)
				}
			})
		}
	})
}

// TestForeignShimIsKilled: the next daemon ends what outlives its shim.
func TestForeignShimIsKilled(t *testing.T) {
	eachRuntime(t, func(t *testing.T, r *runtimes.Runtime) {
		b := newForeign(t, r, "echo ready; sleep 1000 & sleep 1000")
		b.start()
		b.await("ready")
		pids := groupPids(t, b)
		if err := unix.Kill(shimPID(t, b), unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if exit := b.exit(); !exit.Lost || exit.Started.IsZero() {
			t.Errorf("exit %+v", exit)
		}
		adopt(t, b, oci.StateLost)
		for _, pid := range pids {
			poll(t, fmt.Sprintf("process %d is dead", pid), func() bool { return errors.Is(unix.Kill(pid, 0), unix.ESRCH) || zombie(pid) })
		}
	})
}

// TestForeignLease: nobody has to live for a lease to end.
func TestForeignLease(t *testing.T) {
	eachRuntime(t, func(t *testing.T, r *runtimes.Runtime) {
		b := newForeign(t, r, "echo ready; sleep 1000")
		b.cfg.LeaseFile = filepath.Join(t.TempDir(), "lease")
		if err := os.WriteFile(b.cfg.LeaseFile, []byte(`{"untilMs":1}`), 0o600); err != nil {
			t.Fatal(err)
		}
		exit, _ := b.run()
		if !exit.LeaseOver || exit.Code == 0 {
			t.Errorf("exit %+v", exit)
		}
	})
}

// TestForeignNetwork: a published port leads to the container, and its sockets
// are those of the namespace that it was handed.
func TestForeignNetwork(t *testing.T) {
	if !inOwnHost(t) {
		return
	}
	eachRuntime(t, func(t *testing.T, r *runtimes.Runtime) {
		ns, err := userns.New(userns.MapOf(alice), true)
		if err != nil {
			t.Fatal(err)
		}
		n := attach(t, &networked{box: newForeign(t, r, serveForever)}, ns)
		defer ns.User.Close()
		n.start()
		poll(t, "an answer", func() bool { got, err := n.ask(); return err == nil && got == "served\n" })
	})
}
