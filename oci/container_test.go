package oci_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/runtime-spec/specs-go"

	"gbatch/cgroups"
	"gbatch/oci"
	"gbatch/oci/draft"
	"gbatch/oci/failure"
	"gbatch/oci/wire"
)

func TestExitCode(t *testing.T) {
	exit, log := newBox(t, "echo hello; echo oops >&2; exit 7").run()
	if exit.Code != 7 || exit.Signal != 0 || exit.OOMKilled || exit.Failure != nil {
		t.Errorf("exit: %+v", exit)
	}
	if log != "hello\noops\n" || exit.LogBytes != int64(len(log)) {
		t.Errorf("log %q, %d bytes", log, exit.LogBytes)
	}
	if exit.Started.IsZero() || exit.Finished.Before(exit.Started) || exit.CPUNanos == 0 || exit.PeakBytes == 0 {
		t.Errorf("figures are missing: %+v", exit)
	}
}

// What a container sees of itself, one line per case.
func TestInside(t *testing.T) {
	needContainers(t)
	host := t.TempDir()
	if err := os.WriteFile(filepath.Join(host, "data"), []byte("from the host\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		script string
		edit   func(*draft.Request)
		want   string
	}{
		"env":      {`echo $A-$B-$PATH`, func(r *draft.Request) { r.Image.Env = []string{"A=1", "PATH=/bin"}; r.Env = []string{"B=x y", "A=2"} }, "2-x y-/bin\n"},
		"home":     {`echo $HOME`, nil, "/root\n"},
		"hostname": {`hostname`, func(r *draft.Request) { r.Hostname = "rank0" }, "rank0\n"},
		"workdir":  {`pwd`, func(r *draft.Request) { r.WorkDir = "/work" }, "/work\n"},
		"newdir":   {`pwd; ls -d /made/here`, func(r *draft.Request) { r.WorkDir = "/made/here" }, "/made/here\n/made/here\n"},
		"pid":      {`echo $$`, nil, "1\n"},
		"privileged": {`mkdir /m && mount -t tmpfs none /m && echo mounted; mknod /dev/z b 7 200 && dd if=/dev/z of=/dev/null count=0 2>&1 | grep -c 'not permitted'; cat /proc/keys | grep -q . && echo keys`,
			func(r *draft.Request) { r.Privileged = true }, "mounted\n0\nkeys\n"},
		"unprivileged": {`mkdir /m; mount -t tmpfs none /m 2>&1 | grep -c denied; mknod /dev/z b 7 200 && dd if=/dev/z of=/dev/null count=0 2>&1 | grep -c 'not permitted'; cat /proc/keys | grep -q . && echo keys`,
			nil, "1\nmknod: /dev/z: Operation not permitted\n"},
		"stdin":     {`cat; echo end`, nil, "end\n"},
		"user":      {`id; echo $HOME; grep -E 'CapEff|NoNewPrivs' /proc/self/status`, func(r *draft.Request) { r.User = "bob" }, "uid=1000(bob) gid=1000(bob) groups=44(video)\n/home/bob\nCapEff:\t0000000000000000\nNoNewPrivs:\t1\n"},
		"usergroup": {`id -u; id -g; id -G`, func(r *draft.Request) { r.User = "1234:bob"; r.Groups = []string{"extra", "4321"} }, "1234\n1000\n1000 77 4321\n"},
		"imageuser": {`id -un`, func(r *draft.Request) { r.Image.User = "bob" }, "bob\n"},
		"stdout":    {`echo direct >/dev/stdout; echo err >/dev/stderr`, func(r *draft.Request) { r.User = "bob" }, "direct\nerr\n"},
		"shm":       {`df -m /dev/shm | tail -1 | awk '{print $2}'`, func(r *draft.Request) { r.ShmBytes = 24 << 20 }, "24\n"},
		"shmtmpfs":  {`grep -c /dev/shm /proc/mounts; df -m /dev/shm | tail -1 | awk '{print $2}'`, func(r *draft.Request) { r.Tmpfs = []draft.Tmpfs{{Target: "/dev/shm/", Bytes: 9 << 20}} }, "1\n9\n"},
		"cpuset":    {`grep Cpus_allowed_list /proc/self/status`, func(r *draft.Request) { r.Limits.CPUs = cgroups.NewCPUSet(1) }, "Cpus_allowed_list:\t1\n"},
		"romount":   {`cat /in/data; echo x >/in/data; echo $?`, func(r *draft.Request) { r.Mounts = []draft.Mount{{Source: host, Target: "/in", ReadOnly: true}} }, "from the host\n/bin/sh: can't create /in/data: Read-only file system\n1\n"},
		"rwmount":   {`echo x >/out/new; cat /out/new`, func(r *draft.Request) { r.Mounts = []draft.Mount{{Source: host, Target: "/out"}} }, "x\n"},
		"nested": {`cat /a/b/data; touch /a/ok && ls /a`, func(r *draft.Request) {
			r.Mounts = []draft.Mount{{Source: host, Target: "/a/b"}}
			r.Tmpfs = []draft.Tmpfs{{Target: "/a", Bytes: 1 << 20}}
		}, "from the host\nb\nok\n"},
		"filemount": {`cat /etc/resolv.conf`, func(r *draft.Request) {
			r.Mounts = []draft.Mount{{Source: filepath.Join(host, "data"), Target: "/etc/resolv.conf", ReadOnly: true}}
		}, "from the host\n"},
		"roroot": {`touch /x; touch /tmp/x; echo $?`, func(r *draft.Request) {
			r.ReadOnlyRoot = true
			r.Tmpfs = []draft.Tmpfs{{Target: "/tmp", Bytes: 1 << 20}}
		}, "touch: /x: Read-only file system\n0\n"},
		"tmpfsfull": {`dd if=/dev/zero of=/t/f bs=64k 2>&1 | grep -o 'No space left on device'; ls -l /t/f | awk '{print $5}'`, func(r *draft.Request) { r.Tmpfs = []draft.Tmpfs{{Target: "/t", Bytes: 1 << 20}} }, "No space left on device\n1048576\n"},
		"network":   {`ls /sys/class/net`, nil, "lo\n"},
		"rlimit": {`ulimit -n; ulimit -c`, func(r *draft.Request) {
			r.Rlimits = []specs.POSIXRlimit{{Type: "RLIMIT_NOFILE", Soft: 100, Hard: 200}, {Type: "RLIMIT_CORE"}}
		}, "100\n0\n"},
		"rlimithi": {`echo fine`, func(r *draft.Request) {
			r.Rlimits = []specs.POSIXRlimit{{Type: "RLIMIT_MEMLOCK", Soft: ^uint64(0), Hard: ^uint64(0)}}
		}, "fine\n"},
		"seccomp": {`grep -E '^Seccomp:' /proc/self/status; unshare -U true 2>&1`, nil, "Seccomp:\t2\nunshare: unshare(0x10000000): Operation not permitted\n"},
		"proc":    {`echo 1 >/proc/sys/kernel/panic; cat /proc/keys`, nil, "/bin/sh: can't create /proc/sys/kernel/panic: Read-only file system\n"},
		// But for 32 and 33, which the C library keeps for itself and make leaves ignored.
		"sigign": {`x=$(grep SigIgn /proc/self/status); x=${x#*0}; echo $((0x0$x & ~0x180000000))`, nil, "0\n"},
		"noimage": {`echo $0 $1`, func(r *draft.Request) {
			r.Image.Entrypoint = []string{"/bin/sh", "-c", "echo entry $0"}
			r.Command = []string{"cmd"}
		}, "entry cmd\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBox(t, tc.script)
			if tc.edit != nil {
				tc.edit(&b.req)
			}
			_, log := b.run()
			if diff := cmp.Diff(tc.want, log); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDevices: a device that was granted reaches its driver, of which there is
// none here, and one that was not is refused, also through a node of one's own
// and by whichever way a process came into the container. Both are GPUs by their
// numbers; /dev is used, since elsewhere no node works at all.
func TestDevices(t *testing.T) {
	const probe = `cat /dev/nvidia1; rm -f /dev/other; mknod /dev/other c 195 2 && cat /dev/other; rm -f /dev/disk; mknod /dev/disk b 259 99 && cat /dev/disk; head -c2 /dev/zero | wc -c`
	const want = "cat: can't open '/dev/nvidia1': No such device or address\n" +
		"cat: can't open '/dev/other': Operation not permitted\ncat: can't open '/dev/disk': Operation not permitted\n2\n"
	if name, err := os.Readlink("/sys/dev/char/195:1"); err == nil {
		t.Skip("SKIPPED, this machine has a GPU with a driver: " + name)
	}
	b := newBox(t, probe+"; echo ready; read x; "+probe+"; sleep 1000")
	b.req.Terminal, b.req.Capabilities = true, []string{"CAP_MKNOD"}
	b.req.Devices = []specs.LinuxDevice{{Path: "/dev/nvidia1", Type: "c", Major: 195, Minor: 1}}
	s := b.start()
	b.await("ready\r\n")
	lines := func() string { return strings.ReplaceAll(b.log(), "\r", "") }
	if diff := cmp.Diff(want+"ready\n", lines()); diff != "" {
		t.Errorf("the job itself (-want +got):\n%s", diff)
	}
	out, _ := execOutput(t, s, wire.ExecRequest{Args: []string{"sh", "-c", probe}})
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("a command beside it (-want +got):\n%s", diff)
	}
	terminal, err := s.Terminal()
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	if _, err := terminal.WriteString("go\n"); err != nil {
		t.Fatal(err)
	}
	all := want + "ready\ngo\n" + want
	poll(t, "end of the attached answer", func() bool { return len(lines()) >= len(all) || strings.Count(lines(), "\n2\n") == 2 })
	if diff := cmp.Diff(all, lines()); diff != "" {
		t.Errorf("after typing (-want +got):\n%s", diff)
	}
}

func TestFailures(t *testing.T) {
	needContainers(t)
	cases := map[string]struct {
		edit func(*box)
		code int
		want failure.Kind
		text string
	}{
		"notfound":   {func(b *box) { b.req.Command = []string{"pythn3", "x"} }, 127, failure.CommandNotFound, `command "pythn3" is not in the image`},
		"nofile":     {func(b *box) { b.req.Command = []string{"/opt/run"} }, 127, failure.CommandNotFound, `command "/opt/run" is not in the image`},
		"noexec":     {func(b *box) { b.req.Command = []string{"/etc/noexec"} }, 126, failure.CommandNotRunable, `command "/etc/noexec" is not executable by the container's user`},
		"directory":  {func(b *box) { b.req.Command = []string{"/etc"} }, 126, failure.CommandNotRunable, `command "/etc" is a directory`},
		"workdir":    {func(b *box) { b.req.WorkDir = "/etc/passwd" }, 125, failure.WorkDirMissing, `working directory "/etc/passwd" cannot be used in the image`},
		"user":       {func(b *box) { b.req.User = "alice" }, 125, failure.UserUnknown, `image has no user "alice" in /etc/passwd`},
		"group":      {func(b *box) { b.req.User = "bob:nogroup" }, 125, failure.UserUnknown, `image has no group "nogroup" in /etc/group`},
		"groups":     {func(b *box) { b.req.Groups = []string{"wheel"} }, 125, failure.UserUnknown, `image has no group "wheel" in /etc/group`},
		"mount":      {func(b *box) { b.req.Mounts = []draft.Mount{{Source: "/no/such", Target: "/x"}} }, 125, failure.MountFailed, `cannot mount on /x: no such file or directory`},
		"mountfile":  {func(b *box) { b.req.Mounts = []draft.Mount{{Source: "/tmp", Target: "/etc/passwd"}} }, 125, failure.MountFailed, `cannot mount on /etc/passwd: not a directory`},
		"layer":      {func(b *box) { b.cfg.Layers = []string{"/no/such/layer"} }, 125, failure.RootfsFailed, `no such file or directory`},
		"smallmem":   {func(b *box) { b.req.Limits.MemoryBytes = cgroups.MinMemory }, 125, failure.MemoryTooSmall, "memory limit is too small"},
		"nocpu":      {func(b *box) { b.req.Limits.CPUs = cgroups.NewCPUSet(900) }, 125, failure.CgroupFailed, `processors 900 cannot be used on this node`},
		"rlimitname": {func(b *box) { b.req.Rlimits = []specs.POSIXRlimit{{Type: "RLIMIT_NONE"}} }, 125, failure.RuntimeFailed, `unknown resource limit "RLIMIT_NONE"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBox(t, "true")
			tc.edit(b)
			exit, _ := b.run()
			if tc.want == failure.MemoryTooSmall && exit.Failure == nil && exit.Code == 0 {
				return // how little is enough depends on the build
			}
			if exit.Failure == nil {
				t.Fatalf("no failure: %+v", exit)
			}
			if exit.Code != tc.code || exit.Failure.Kind != tc.want || !strings.Contains(exit.Failure.Message, tc.text) {
				t.Errorf("code %d, kind %s\nmessage %s\ndetail %s", exit.Code, exit.Failure.Kind, exit.Failure.Message, exit.Failure.Detail)
			}
			if !exit.Started.IsZero() {
				t.Error("a start that failed has a start time")
			}
		})
	}
}

// Code 137 has four causes, and only one of them is the memory limit.
func TestOOM(t *testing.T) {
	needContainers(t)
	t.Run("killed", func(t *testing.T) {
		exit, _ := newBox(t, "exec tail /dev/zero").run()
		if exit.Code != 137 || !exit.OOMKilled || exit.OOMKills == 0 {
			t.Errorf("exit: %+v", exit)
		}
	})
	t.Run("child", func(t *testing.T) {
		// A job that lost a process must not hang on.
		exit, _ := newBox(t, "tail /dev/zero & sleep 1000; exit 0").run()
		if !exit.OOMKilled || exit.Code == 0 {
			t.Errorf("exit: %+v", exit)
		}
	})
	t.Run("plain", func(t *testing.T) {
		exit, _ := newBox(t, "exit 137").run()
		if exit.Code != 137 || exit.Signal != 0 || exit.OOMKilled {
			t.Errorf("exit: %+v", exit)
		}
	})
	t.Run("self", func(t *testing.T) {
		exit, _ := newBox(t, "sh -c 'kill -9 $$'").run()
		if exit.OOMKilled {
			t.Errorf("exit: %+v", exit)
		}
	})
	t.Run("tmpfs", func(t *testing.T) {
		// A tmpfs counts too, so the limit has to have room for it.
		b := newBox(t, "dd if=/dev/zero of=/dev/shm/f bs=1M count=200")
		b.req.ShmBytes = 500 << 20
		exit, _ := b.run()
		if !exit.OOMKilled {
			t.Errorf("exit: %+v", exit)
		}
	})
}

func TestPidsLimit(t *testing.T) {
	b := newBox(t, "for i in $(seq 100); do sleep 100 & done; echo unreached")
	b.req.Limits.Pids = 10
	exit, log := b.run()
	if exit.Code == 0 || !strings.Contains(log, "can't fork: Resource temporarily unavailable") {
		t.Errorf("exit %+v, log %q", exit, log)
	}
}

func TestForkBombIsBounded(t *testing.T) {
	b := newBox(t, "b() { b & b & sleep 1000; }; b & echo bomb; sleep 1000")
	s := b.start()
	b.await("bomb")
	poll(t, "fork bomb", func() bool { st, err := s.Stats(); return err == nil && st.Pids >= 32 })
	if st, err := s.Stats(); err != nil || st.Pids > 64 {
		t.Errorf("%+v, %v", st, err)
	}
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if exit := b.exit(); exit.Signal != int(syscall.SIGKILL) || !exit.Stopped {
		t.Errorf("exit: %+v", exit)
	}
}

func TestDaemonisedChildEnds(t *testing.T) {
	b := newBox(t, "setsid sh -c 'echo $$ >/out/pid; exec sleep 1000' >/dev/null 2>&1 & while ! [ -s /out/pid ]; do sleep 0.01; done; exit 3")
	out := t.TempDir()
	b.req.Mounts = []draft.Mount{{Source: out, Target: "/out"}}
	exit, _ := b.run()
	if exit.Code != 3 {
		t.Errorf("exit: %+v", exit)
	}
	if g, err := cgroups.Find(b.req.CgroupPath); err != nil || g.Exists() {
		t.Errorf("cgroup is left: %v", err)
	}
}

func TestSignals(t *testing.T) {
	needContainers(t)
	cases := map[string]struct {
		script string
		want   int
	}{
		// The first process handles it.
		"handler": {`trap 'echo got; exit 9' TERM; echo ready; while :; do sleep 0.02; done`, 9},
		// A shell in front passes nothing on; its child handles it.
		"child": {`sh -c "trap 'exit 9' TERM; echo ready; while :; do sleep 0.02; done"; exit $?`, 9},
		// Nobody handles it: the leaf dies of it.
		"leaf": {`echo ready; sleep 1000; exit $?`, 143},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBox(t, tc.script)
			s := b.start()
			b.await("ready")
			poll(t, "running sleep", func() bool { st, err := s.Stats(); return err == nil && st.Pids > 1 })
			if err := s.Stop(t.Context(), syscall.SIGTERM, patience); err != nil {
				t.Fatal(err)
			}
			if exit := b.exit(); exit.Code != tc.want || !exit.Stopped {
				t.Errorf("exit: %+v", exit)
			}
		})
	}
}

func TestStopEscalates(t *testing.T) {
	b := newBox(t, `trap '' TERM; echo ready; sh -c "trap '' TERM; sleep 1000" & wait`)
	s := b.start()
	b.await("ready")
	if err := s.Stop(t.Context(), syscall.SIGTERM, 20_000_000); err != nil {
		t.Fatal(err)
	}
	if exit := b.exit(); exit.Code != 137 || exit.OOMKilled || !exit.Stopped {
		t.Errorf("exit: %+v", exit)
	}
}

// TestKillMoved: a container ends when it shall, also where somebody has moved its processes
// out of its control group, as system managers do with groups that they take for theirs.
func TestKillMoved(t *testing.T) {
	b := newBox(t, "trap '' TERM; sleep 1000 & echo ready; while :; do sleep 0.02; done")
	s := b.start()
	b.await("ready")
	host, err := cgroups.Detect()
	if err != nil {
		t.Fatal(err)
	}
	group, err := host.Find(b.req.CgroupPath)
	if err != nil {
		t.Fatal(err)
	}
	poll(t, "an empty group", func() bool {
		pids, err := group.Pids()
		for _, pid := range pids {
			for _, root := range host.Mounts {
				_ = os.WriteFile(filepath.Join(root, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0)
			}
		}
		return err == nil && len(pids) == 0
	})
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if exit := b.exit(); exit.Code != 137 || !exit.Stopped {
		t.Errorf("exit: %+v", exit)
	}
}

// TestStopStuckShim: a container whose shim stands still, and does not answer, ends when it shall.
func TestStopStuckShim(t *testing.T) {
	oci.SetCallTimeout(t, 300*time.Millisecond)
	b := newBox(t, "trap '' TERM; echo ready; while :; do sleep 0.02; done")
	s := b.start()
	b.await("ready")
	if err := syscall.Kill(shimPID(t, b), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.Stop(ctx, syscall.SIGTERM, 20*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if exit := b.exit(); exit.Code != 137 || !exit.Lost {
		t.Errorf("exit: %+v", exit)
	}
}

func TestKillBeforeStart(t *testing.T) {
	b := newBox(t, "echo ran")
	s := b.start()
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	exit := b.exit()
	if !exit.Stopped || exit.Code != 137 {
		t.Errorf("exit: %+v", exit)
	}
}

func TestPauseStatsUpdate(t *testing.T) {
	b := newBox(t, "echo ready; while :; do :; done")
	s := b.start()
	b.await("ready")
	if phase, _ := s.Phase(); phase != wire.PhaseRunning {
		poll(t, "running phase", func() bool { p, _ := s.Phase(); return p == wire.PhaseRunning })
	}
	if err := s.Stand(true); err != nil {
		t.Fatal(err)
	}
	first, err := s.Stats()
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.Stats()
	if err != nil || second.CPUNanos != first.CPUNanos || first.MemoryBytes == 0 || first.Pids == 0 {
		t.Errorf("paused: %+v, then %+v, %v", first, second, err)
	}
	if err := s.Stand(false); err != nil {
		t.Fatal(err)
	}
	poll(t, "more cpu time", func() bool { st, err := s.Stats(); return err == nil && st.CPUNanos > first.CPUNanos })
	if err := s.Update(cgroups.Limits{CPUs: cgroups.NewCPUSet(0), MemoryBytes: 32 << 20}); err != nil {
		t.Fatal(err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.PID()))
	if err != nil || !strings.Contains(string(status), "Cpus_allowed_list:\t0\n") {
		t.Errorf("cpus were not changed: %v", err)
	}
	if err := s.Stand(true); err != nil {
		t.Fatal(err)
	}
	// A frozen container has to die too.
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	b.exit()
}

// The shim works on its container's cores, and the container can get others.
func TestShimStaysOnCores(t *testing.T) {
	b := newBox(t, "echo ready; sleep 1000")
	b.req.Limits.CPUs = cgroups.NewCPUSet(1)
	s := b.start()
	b.await("ready")
	allowed := func(pid int) string {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(data), "Cpus_allowed_list:\t")
		line, _, _ := strings.Cut(rest, "\n")
		return line
	}
	if got := allowed(shimPID(t, b)); got != "1" {
		t.Errorf("shim on %s", got)
	}
	if err := s.Update(cgroups.Limits{CPUs: cgroups.NewCPUSet(0, 1)}); err != nil {
		t.Fatal(err)
	}
	poll(t, "running phase", func() bool { return s.PID() != 0 })
	if got := allowed(s.PID()); got != "0-1" {
		t.Errorf("container on %s after an update to 0-1", got)
	}
}
