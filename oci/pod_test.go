package oci_test

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"gbatch/cgroups"
	"gbatch/oci"
	"gbatch/oci/draft"
	"gbatch/oci/failure"
	"gbatch/oci/stage"
	"gbatch/oci/userns"
	"gbatch/oci/wire"
)

// other makes a part as before does, and takes it off that list.
func (b *box) other(name, script string, edit func(*draft.Request)) oci.Part {
	b.Helper()
	p := *b.before(name, script, edit)
	b.cfg.Before = b.cfg.Before[:len(b.cfg.Before)-1]
	return p
}

// sidecar adds a program that begins before the box's own and goes on beside it.
func (b *box) sidecar(name, script string) {
	p := b.other(name, script, nil)
	p.Stays = true
	b.cfg.Before = append(b.cfg.Before, p)
}

// beside adds a program that runs beside the box's own.
func (b *box) beside(name, script string) {
	b.cfg.Beside = append(b.cfg.Beside, b.other(name, script, nil))
}

// shares mounts a volume of the box's in all of its programs at /v, and gives them a
// network, and ids that are nobody's on the host.
func (b *box) shares() string {
	b.Helper()
	dir := b.volume()
	b.req.Mounts = []draft.Mount{{Source: dir, Target: "/v"}}
	b.cfg.Ending = oci.Ending{Signal: int(unix.SIGTERM), GraceMS: 60_000}
	b.req.IDs = userns.MapOf(userns.Owner{UID: 2000, GID: 2000, First: 300000})
	ns, err := userns.New(b.req.IDs, true)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(ns.Close)
	h, err := netlink.NewHandleAt(netns.NsHandle(ns.Net.Fd()), unix.NETLINK_ROUTE)
	if err == nil {
		defer h.Close()
		err = h.LinkSetUp(&netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: 1}})
	}
	if err != nil {
		b.Fatal(err)
	}
	b.hand.User, b.hand.Namespace = ns.User, ns.Net
	b.cfg.Network = &oci.ShimNetwork{Addr: netip.AddrFrom4([4]byte{127, 0, 0, 1})}
	return dir
}

const until = `until [ -e /v/%s ]; do sleep 0.05; done; `

func wait(file string) string { return strings.ReplaceAll(until, "%s", file) }

// lines are those of a log that have a label, without it.
func lines(log, label string) (out []string) {
	for line := range strings.Lines(log) {
		if rest, ok := strings.CutPrefix(line, label); ok && (label != "" || !strings.HasPrefix(line, "[")) {
			out = append(out, strings.TrimSpace(rest))
		}
	}
	return out
}

// TestPod: programs of other images run at the same time as the container's own, on the
// same loopback, and what they say is told apart; a sidecar is there before the others and
// is ended after them, by its signal.
func TestPod(t *testing.T) {
	b := newBox(t, wait("beside")+`nc 127.0.0.1 7001 </dev/null; cat /image 2>&1 | grep -c 'No such'; ps | grep -c '[n]c -l'; echo done >/v/main`)
	b.shares()
	b.sidecar("proxy", `trap 'echo bye; exit 3' TERM; cat /image; echo; echo side >/v/side; while :; do sleep 0.05 2>/dev/null; done 2>/dev/null`)
	b.before("prepare", wait("side")+`echo prepared`, nil)
	b.beside("serve", `echo served | nc -l -p 7001 & until grep -q :1B59 /proc/net/tcp /proc/net/tcp6; do sleep 0.05; done; echo on >/v/beside; `+wait("main")+`printf "no end"`)
	exit, log := b.run()
	if exit.Code != 0 || exit.Part != "" || exit.Beside || exit.Started.IsZero() || exit.CPUNanos == 0 || exit.LogBytes != int64(len(log)) {
		t.Errorf("exit: %+v", exit)
	}
	for label, want := range map[string][]string{
		"":         {"gbatch: prepare, 1 of 1 that run before the job", "prepared", "gbatch: the job itself", "served", "1", "0"},
		"[proxy] ": {"proxy", "bye"}, "[serve] ": {"no end"},
	} {
		if got := lines(log, label); !slices.Equal(got, want) {
			t.Errorf("lines with %q: %q, want %q", label, got, want)
		}
	}
	if left, _ := filepath.Glob(b.dir + "/scratch/*"); len(left) > 8 {
		t.Errorf("left %v", left)
	}
	if g, err := cgroups.Find(b.req.CgroupPath); err != nil || g.Exists() {
		t.Errorf("the group is left: %v", err)
	}
}

// TestPodFails: all programs run to their ends, and one that failed is the container's end;
// or the first that fails ends the others.
func TestPodFails(t *testing.T) {
	for name, tc := range map[string]struct {
		main, beside string
		edit         func(*draft.Request)
		together     bool
		code         int
		part         string
		kind         failure.Kind
		log          string
	}{
		"beside":   {main: wait("over") + "echo main", beside: "echo x >/v/over; exit 5", code: 5, part: "b", log: "main"},
		"own":      {main: "exit 6", beside: "sleep 0.3; echo still", code: 6, log: "[b] still"},
		"together": {main: "trap 'echo asked; exit 9' TERM; while :; do sleep 0.05; done", beside: "sleep 0.3; exit 5", together: true, code: 5, part: "b", log: "asked"},
		"command":  {main: "sleep 1000", edit: func(r *draft.Request) { r.Command = []string{"/nothing"} }, code: 127, part: "b", kind: failure.CommandNotFound},
		"user":     {main: "echo never", edit: func(r *draft.Request) { r.User = "nobody-here" }, code: 125, kind: failure.UserUnknown},
		"memory":   {main: "echo x", beside: "dd if=/dev/zero of=/dev/null bs=100M count=1", code: 137, part: "b"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t, tc.main)
			b.shares()
			b.cfg.Beside, b.cfg.FailTogether = []oci.Part{b.other("b", tc.beside, tc.edit)}, tc.together
			exit, log := b.run()
			var kind failure.Kind
			if exit.Failure != nil {
				kind = exit.Failure.Kind
			}
			if exit.Code != tc.code || exit.Part != tc.part || exit.Beside != (tc.part != "") || kind != tc.kind || exit.OOMKilled != (name == "memory") || !strings.Contains(log, tc.log) || exit.Stopped {
				t.Errorf("exit %+v, %s, log %q", exit, kind, log)
			}
			if f := exit.Failure; f != nil && !strings.HasPrefix(f.Message, "b: ") {
				t.Errorf("whose failure it is: %q", f.Message)
			}
		})
	}
}

// TestPodMemory: a program has a bound of its own below that of all, and all have that.
func TestPodMemory(t *testing.T) {
	b := newBox(t, `dd if=/dev/zero of=/dev/null bs=80M count=1 2>/dev/null && echo large`)
	b.shares()
	b.req.Limits.MemoryBytes = 256 << 20
	p := b.other("b", "dd if=/dev/zero of=/dev/null bs=80M count=1; sleep 1000", nil)
	p.MemoryBytes = 48 << 20
	b.cfg.Beside = []oci.Part{p}
	exit, log := b.run()
	if exit.Code != 137 || exit.Part != "b" || !exit.OOMKilled || !slices.Equal(lines(log, ""), []string{"large"}) {
		t.Errorf("exit %+v, log %q", exit, log)
	}
}

// TestSidecarBeginsAgain: with an image as it was, once at once, and nothing of it counts.
func TestSidecarBeginsAgain(t *testing.T) {
	b := newBox(t, wait("second")+"echo main")
	vol := b.shares()
	b.sidecar("s", `ls /left 2>&1 | grep -c 'No such'; echo x >/left; if [ -e /v/first ]; then echo >/v/second; sleep 1000; fi; echo >/v/first; exit 7`)
	b.cfg.Before[0].Below = []stage.Below{{Target: "/v/deep", Top: vol, Path: "a/b"}}
	b.cfg.Before[0].Spec.Mounts = append(b.cfg.Before[0].Spec.Mounts, b.cfg.Before[0].Spec.Mounts[len(b.cfg.Before[0].Spec.Mounts)-1])
	b.cfg.Before[0].Spec.Mounts[len(b.cfg.Before[0].Spec.Mounts)-1].Destination = "/v/deep"
	exit, log := b.run()
	if got := lines(log, "[s] "); exit.Code != 0 || len(got) < 2 || got[0]+got[1] != "11" || !strings.Contains(log, "gbatch: s ended with code 7; it begins again in 0s\n") {
		t.Errorf("exit %+v, log %q", exit, log)
	}
}

// TestPodIsStopped: the signal goes to all but sidecars, which follow; and a kill to all.
func TestPodIsStopped(t *testing.T) {
	for name, sig := range map[string]syscall.Signal{"TERM": unix.SIGTERM, "KILL": unix.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			const script = `trap 'echo stopped; exit 0' TERM; echo >/v/NAME; while :; do sleep 0.05; done`
			b := newBox(t, strings.ReplaceAll(script, "NAME", "main"))
			vol := b.shares()
			b.sidecar("s", strings.ReplaceAll(script, "NAME", "s"))
			b.beside("b", strings.ReplaceAll(script, "NAME", "b"))
			s := b.start()
			for _, file := range []string{"main", "s", "b"} {
				poll(t, file, func() bool { _, err := os.Stat(filepath.Join(vol, file)); return err == nil })
			}
			if err := s.Stop(context.Background(), sig, time.Minute); err != nil {
				t.Fatal(err)
			}
			want := 3
			if sig == unix.SIGKILL {
				want = 0
			}
			if exit, log := b.exit(), b.log(); !exit.Stopped || strings.Count(log, "stopped") != want || strings.Contains(log, "again") {
				t.Errorf("exit %+v, log %q", exit, log)
			}
		})
	}
}

// TestPodIsEntered: commands run in the container that they name, and signals without a stop
// are the own program's. Standing still is for all, and limits are changed for all.
func TestPodIsEntered(t *testing.T) {
	b := newBox(t, `trap 'echo usr; touch /v/usr' USR1; echo >/v/main; until [ -e /v/over ]; do sleep 0.05; done`)
	vol := b.shares()
	b.beside("b", `echo >/v/b; `+wait("last"))
	s := b.start()
	for _, file := range []string{"main", "b"} {
		poll(t, file, func() bool { _, err := os.Stat(filepath.Join(vol, file)); return err == nil })
	}
	for part, want := range map[string]string{"b": "b", "": "own\n"} {
		if out, code := execOutput(t, s, wire.ExecRequest{Part: part, Args: []string{"sh", "-c", "cat /image 2>/dev/null || echo own"}}); out != want || code != 0 {
			t.Errorf("a command in %q: %q, %d", part, out, code)
		}
	}
	if _, err := s.Exec(wire.ExecRequest{Part: "none", Args: []string{"true"}}, wire.ExecStdio{}); err == nil || !strings.Contains(err.Error(), `no container "none" runs in the job; these do: b`) {
		t.Errorf("a container that is not there: %v", err)
	}
	if err := s.Signal(unix.SIGUSR1); err != nil {
		t.Error(err)
	}
	poll(t, "its signal", func() bool { _, err := os.Stat(vol + "/usr"); return err == nil })
	for range 2 { // the second time it is so already
		if err := s.Stand(true); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Stand(false); err != nil {
		t.Fatal(err)
	}
	if err := s.Update(cgroups.Limits{MemoryBytes: 96 << 20}); err != nil {
		t.Fatal(err)
	}
	if got := memoryLimit(t, b); got != 96<<20 {
		t.Errorf("limit %d", got)
	}
	if st, err := s.Stats(); err != nil || st.Pids < 2 || st.MemoryBytes == 0 {
		t.Errorf("what it uses: %+v, %v", st, err)
	}
	own := s.PID()
	for _, file := range []string{"over", "last"} {
		if err := os.WriteFile(vol+"/"+file, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if file == "over" {
			poll(t, "another process to be found by", func() bool { pid := s.PID(); return pid != own && pid != 0 })
			if _, err := s.Exec(wire.ExecRequest{Args: []string{"true"}}, wire.ExecStdio{}); err == nil || !strings.Contains(err.Error(), "the job's own program does not run; these do: b") {
				t.Errorf("a command in what has ended: %v", err)
			}
		}
	}
	if exit := b.exit(); exit.Code != 0 {
		t.Errorf("exit: %+v", exit)
	}
}

// TestPodCores: cores become fewer and more for all programs, and for one that begins later.
func TestPodCores(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("SKIPPED, this machine has one processor")
	}
	b := newBox(t, wait("over"))
	vol := b.shares()
	b.req.Limits.CPUs = cgroups.NewCPUSet(0, 1)
	b.sidecar("s", "trap 'exit 0' TERM; touch /v/s; "+wait("again")+"rm /v/again")
	s := b.start()
	cores := func(want cgroups.CPUSet) {
		t.Helper()
		for _, part := range []string{"s", ""} {
			out, _ := execOutput(t, s, wire.ExecRequest{Part: part, Args: []string{"grep", "Cpus_allowed_list", "/proc/self/status"}})
			if !strings.HasSuffix(out, "\t"+want.String()+"\n") {
				t.Errorf("%q has %s, want %s", part, out, want)
			}
		}
	}
	there := func(name string) func() bool {
		return func() bool { _, err := os.Stat(filepath.Join(vol, name)); return err == nil }
	}
	poll(t, "sidecar", there("s"))
	poll(t, "main", func() bool { return s.PID() != 0 })
	for _, cpus := range []cgroups.CPUSet{cgroups.NewCPUSet(1), cgroups.NewCPUSet(0, 1), cgroups.NewCPUSet(0)} {
		if err := s.Update(cgroups.Limits{CPUs: cpus}); err != nil {
			t.Fatal(err)
		}
		cores(cpus)
	}
	if err := errors.Join(os.Remove(filepath.Join(vol, "s")), os.WriteFile(filepath.Join(vol, "again"), nil, 0o666), os.Chmod(vol, 0o777)); err != nil {
		t.Fatal(err)
	}
	poll(t, "the sidecar again", there("s"))
	cores(cgroups.NewCPUSet(0))
	if err := os.WriteFile(vol+"/over", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if exit := b.exit(); exit.Code != 0 {
		t.Errorf("exit: %+v", exit)
	}
}

// TestShimOfPodIsKilled: without its shim no program lives on.
func TestShimOfPodIsKilled(t *testing.T) {
	b := newBox(t, "echo ready; sleep 1000")
	b.shares()
	b.sidecar("s", "sleep 1000")
	b.beside("b", "sleep 1000")
	s := b.start()
	b.await("ready")
	if err := unix.Kill(shimPID(t, b), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-s.Done()
	exit, err := s.Exit()
	if err != nil || !exit.Lost {
		t.Errorf("exit: %+v, %v, log %q", exit, err, b.log())
	}
	if g, err := cgroups.Find(b.req.CgroupPath); err != nil || g.Exists() {
		t.Errorf("the group is left: %v", err)
	}
}
