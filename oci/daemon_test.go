package oci_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gbatch/cgroups"
	"gbatch/oci"
	"gbatch/oci/draft"
	"gbatch/oci/handed"
	"gbatch/oci/held"
	"gbatch/oci/result"
)

// daemonEnv makes the test binary play a daemon: it starts the directories
// that are its value, says so, and waits to be killed.
const daemonEnv = "GBATCH_TEST_DAEMON"

func daemonMain() {
	for dir := range strings.SplitSeq(os.Getenv(daemonEnv), ":") {
		if _, err := new(oci.Pool).Start(dir, handed.Handover{}); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	fmt.Println("started")
	select {}
}

// startInDaemon has another process start the boxes, and returns its death.
func startInDaemon(t *testing.T, boxes ...*box) (kill func()) {
	t.Helper()
	var dirs []string
	for _, b := range boxes {
		b.prepare()
		dirs = append(dirs, b.dir)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), daemonEnv+"="+strings.Join(dirs, ":"))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if line != "started\n" {
		t.Fatalf("daemon says %q, %v", line, err)
	}
	kill = func() {
		if err := cmd.Process.Kill(); err == nil {
			cmd.Wait()
		}
	}
	t.Cleanup(kill)
	return kill
}

func (b *box) adopt() (oci.State, *oci.Container, error) {
	if b.guest != nil {
		return oci.AdoptGuest(*b.guest)
	}
	return oci.Adopt(b.dir)
}

func adopt(t *testing.T, b *box, want oci.State) {
	t.Helper()
	state, shim, err := b.adopt()
	if err != nil || state != want {
		t.Fatalf("state %s, %v; want %s; shim: %s", state, err, want, b.shimLog())
	}
	if (shim != nil) != (want == oci.StateAlive) {
		t.Fatalf("state %s with shim %v", state, shim)
	}
	if b.shim = shim; shim != nil {
		t.Cleanup(func() { shim.Kill(); <-shim.Done() })
	}
}

func TestDaemonIsKilled(t *testing.T) {
	needContainers(t)
	out := t.TempDir()
	wait := `echo before; while ! [ -e /out/go ]; do sleep 0.01; done; echo after; exit 42`
	running, finished, killed := newBox(t, wait), newBox(t, "echo done; exit 5"), newBox(t, "echo ready; sleep 1000")
	running.req.Mounts = []draft.Mount{{Source: out, Target: "/out"}}
	killDaemon := startInDaemon(t, running, finished, killed)
	running.await("before")
	killed.await("ready")
	killDaemon()
	poll(t, "exit file", func() bool { _, err := result.Read(finished.dir); return err == nil })

	adopt(t, running, oci.StateAlive)
	adopt(t, killed, oci.StateAlive)
	poll(t, "finished shim's death", func() bool { state, _, err := oci.Adopt(finished.dir); return err == nil && state == oci.StateFinished })
	if exit, err := result.Read(finished.dir); err != nil || exit.Code != 5 {
		t.Errorf("finished: %+v, %v", exit, err)
	}
	if err := os.WriteFile(filepath.Join(out, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if exit := running.exit(); exit.Code != 42 || running.log() != "before\nafter\n" {
		t.Errorf("running: %+v, log %q", exit, running.log())
	}
	if err := killed.shim.Kill(); err != nil {
		t.Fatal(err)
	}
	if exit := killed.exit(); exit.Code != 137 || !exit.Stopped {
		t.Errorf("killed: %+v", exit)
	}
	adopt(t, killed, oci.StateFinished)
}

// shimPID finds the shim of a box by its working directory.
func shimPID(t *testing.T, b *box) int {
	t.Helper()
	procs, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range procs {
		cwd, _ := os.Readlink(p + "/cwd")
		args, _ := os.ReadFile(p + "/cmdline")
		if cwd == b.dir && strings.Contains(string(args), "\x00shim\x00") {
			pid, _ := strconv.Atoi(filepath.Base(p))
			return pid
		}
	}
	t.Fatal("no shim process")
	return 0
}

func TestShimIsKilled(t *testing.T) {
	b := newBox(t, "echo ready; setsid sleep 1000 & sleep 1000")
	b.start()
	b.await("ready")
	var pids []int
	poll(t, "second process", func() bool { pids = groupPids(t, b); return len(pids) > 1 })
	if err := unix.Kill(shimPID(t, b), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if exit := b.exit(); !exit.Lost || exit.Started.IsZero() || exit.LogBytes != 6 {
		t.Errorf("exit: %+v", exit)
	}
	for _, pid := range pids { // one that dies leaves its control group first
		poll(t, fmt.Sprintf("process %d is dead", pid), func() bool { return errors.Is(unix.Kill(pid, 0), unix.ESRCH) || zombie(pid) })
	}
	if g, _ := cgroups.Find(b.req.CgroupPath); g.Exists() {
		t.Error("cgroup is left")
	}
	adopt(t, b, oci.StateLost)
	for range 2 {
		if err := oci.Cleanup(b.dir); err != nil {
			t.Error(err)
		}
	}
	if left, _ := filepath.Glob(b.dir + "/*"); len(left) == 0 || strings.Contains(strings.Join(left, " "), "upper") {
		t.Errorf("left: %v", left)
	}
}

func groupPids(t *testing.T, b *box) []int {
	t.Helper()
	g, err := cgroups.Find(b.req.CgroupPath)
	if err != nil {
		t.Fatal(err)
	}
	pids, err := g.Pids()
	if err != nil {
		t.Fatal(err)
	}
	return pids
}

// zombie says whether a process is dead and only waits for its parent, which
// in a test environment may be a first process that reaps nobody.
func zombie(pid int) bool {
	data, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return strings.Contains(string(data), ") Z ")
}

// A shim that dies before the mark leaves a container that may be started
// again, and nothing of the dead one.
func TestShimIsKilledWhileStarting(t *testing.T) {
	b := newBox(t, "echo ran; sleep 1000")
	b.start()
	poll(t, "set-up process", func() bool { return len(groupPids(t, b)) > 0 })
	if err := unix.Kill(shimPID(t, b), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-b.shim.Done()
	state, shim, err := oci.Adopt(b.dir)
	if err != nil || shim != nil {
		t.Fatalf("%s, %v, %v", state, shim, err)
	}
	exit, err := b.shim.Exit()
	switch state {
	case oci.StateReady:
		if !errors.Is(err, oci.ErrNeverStarted) {
			t.Errorf("exit: %v", err)
		}
	case oci.StateLost: // the kill came after the mark
		if err != nil || !exit.Lost {
			t.Errorf("exit: %+v, %v", exit, err)
		}
	default:
		t.Errorf("state %s", state)
	}
	if pids := groupPids(t, b); len(pids) > 0 {
		t.Errorf("processes are left: %v", pids)
	}
}

func TestAdoptStates(t *testing.T) {
	b := newBox(t, "true")
	adopt(t, b, oci.StateNone)
	b.prepare()
	adopt(t, b, oci.StateReady)
	s, err := new(oci.Pool).Start(b.dir, handed.Handover{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := new(oci.Pool).Start(b.dir, handed.Handover{}); err == nil {
		t.Error("two shims in one directory")
	}
	<-s.Done()
	adopt(t, b, oci.StateFinished)
	if _, err := new(oci.Pool).Start(b.dir, handed.Handover{}); err == nil || !strings.Contains(err.Error(), "used before") {
		t.Errorf("start again: %v", err)
	}
}

// A job that fills the disk under its own directory keeps its result.
func TestFullDisk(t *testing.T) {
	b := newBox(t, "dd if=/dev/zero of=/fill bs=1k 2>/dev/null; dd if=/dev/zero of=/fill2 bs=1 2>/dev/null; echo full; exit 3")
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=4m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(disk, unix.MNT_DETACH) })
	b.dir = filepath.Join(disk, "c")
	b.start()
	<-b.shim.Done()
	if exit, err := b.shim.Exit(); err != nil || exit.Lost || exit.Code != 3 {
		t.Errorf("exit: %+v, %v", exit, err)
	}
}

func TestCleanupRefusesTheLiving(t *testing.T) {
	b := newBox(t, "sleep 1000")
	b.start()
	if err := oci.Cleanup(b.dir); !errors.Is(err, oci.ErrAlive) {
		t.Errorf("cleanup: %v", err)
	}
}

// TestCleanupWaitsForPassingHolders: who has the lock in passing, as a process between its fork and its exec has, is no shim
// that lives.
func TestCleanupWaitsForPassingHolders(t *testing.T) {
	b := newBox(t, "exit 0")
	b.start()
	<-b.shim.Done()
	lock, err := held.TakeWithin(b.dir, held.Passing)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(20*time.Millisecond, func() { lock.Close() })
	if err := oci.Cleanup(b.dir); err != nil {
		t.Error(err)
	}
}

func TestSweep(t *testing.T) {
	needContainers(t)
	parent, prefix := t.TempDir(), testCgroup+"/sweep"
	var boxes []*box
	for range 3 {
		b := newBox(t, "echo ready; sleep 1000")
		b.dir = filepath.Join(parent, b.id)
		b.req.CgroupPath = prefix + "/" + b.id
		b.start()
		b.await("ready")
		boxes = append(boxes, b)
	}
	kept, alive, lost := boxes[0], boxes[1], boxes[2]
	if err := unix.Kill(shimPID(t, lost), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-lost.shim.Done()
	if err := alive.shim.Kill(); err != nil {
		t.Fatal(err)
	}
	<-alive.shim.Done()
	// A killed shim lets go of its lock a moment after its connection.
	poll(t, "removal", func() bool {
		err := errors.Join(oci.Remove(alive.dir), oci.Remove(lost.dir))
		if err != nil && !errors.Is(err, oci.ErrAlive) {
			t.Fatal(err)
		}
		return err == nil
	})
	if _, err := cgroups.Sweep(prefix, func(path string) bool { return path == kept.req.CgroupPath }); err != nil {
		t.Fatal(err)
	}
	if entries, _ := os.ReadDir(parent); len(entries) != 1 || entries[0].Name() != kept.id {
		t.Errorf("left: %v", entries)
	}
	if len(groupPids(t, kept)) == 0 || len(groupPids(t, alive))+len(groupPids(t, lost)) > 0 {
		t.Error("the wrong processes were killed")
	}
	kept.shim.Kill()
	kept.exit()
	if removed, err := cgroups.Sweep(testCgroup, func(string) bool { return false }); err != nil || len(removed) != 1 {
		t.Errorf("sweep of the empty prefix: %v, %v", removed, err)
	}
}

// A directory deeper than a socket's path may be long.
func TestLongPath(t *testing.T) {
	b := newBox(t, "echo ready; sleep 1000")
	b.dir = filepath.Join(filepath.Dir(b.dir), strings.Repeat("deep/", 30), "c")
	startInDaemon(t, b)
	b.await("ready")
	adopt(t, b, oci.StateAlive)
	if err := b.shim.Kill(); err != nil {
		t.Fatal(err)
	}
	b.exit()
}
