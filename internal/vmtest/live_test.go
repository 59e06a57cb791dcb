package vmtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"gbatch/cgroups"
	"gbatch/oci"
	"gbatch/oci/wire"
)

// busy uses a processor, and has a child in a session of its own.
const busy = `setsid sleep 1000 & echo ready; while :; do :; done`

// checkLive does to one running container all that can be done to one.
func checkLive(r *report) {
	b := newBox("live", busy)
	r.check("adopt", func() error { return errors.Join(b.startElsewhere(), b.awaitRunning()) })
	if b.shim == nil {
		return // told by the check
	}
	r.check("stats", b.stats)
	r.check("freeze", b.freeze)
	r.check("update", b.update)
	r.check("exec", b.exec)
	r.check("kill_frozen", b.killFrozen)
	r.check("stop", checkStop)
}

func (b *box) awaitRunning() error {
	if b.shim == nil {
		return nil
	}
	if err := b.awaitLog("ready"); err != nil {
		return err
	}
	return poll("running phase", func() bool { return b.shim.PID() != 0 })
}

func (b *box) stats() error {
	s, err := b.shim.Stats()
	if err != nil {
		return err
	}
	if s.CPUNanos == 0 || s.MemoryBytes == 0 || s.PeakBytes < s.MemoryBytes || s.OOMKills != 0 || s.Pids < 2 {
		return fmt.Errorf("stats %+v", s)
	}
	return nil
}

func (b *box) freeze() error {
	if err := b.shim.Stand(true); err != nil {
		return err
	}
	if text := b.kernel("freezer.state", "cgroup.events"); text != "FROZEN" && !strings.Contains(text, "frozen 1") {
		return fmt.Errorf("the kernel says %q", text)
	}
	first, err := b.shim.Stats()
	if err != nil {
		return err
	}
	second, err := b.shim.Stats()
	if err != nil || second.CPUNanos != first.CPUNanos {
		return fmt.Errorf("frozen: %+v, then %+v, %v", first, second, err)
	}
	if err := b.shim.Stand(false); err != nil {
		return err
	}
	return poll("processor time", func() bool { s, err := b.shim.Stats(); return err == nil && s.CPUNanos > first.CPUNanos })
}

// update changes one limit at a time: the other has to stay.
func (b *box) update() error {
	steps := []struct {
		change       cgroups.Limits
		memory, cpus string
	}{
		{cgroups.Limits{MemoryBytes: 48 << 20}, "50331648", "1"},
		{cgroups.Limits{CPUs: cgroups.NewCPUSet(0, 1)}, "50331648", "0-1"},
		{cgroups.Limits{MemoryBytes: 96 << 20, CPUs: cgroups.NewCPUSet(0)}, "100663296", "0"},
	}
	for _, s := range steps {
		if err := b.shim.Update(s.change); err != nil {
			return err
		}
		memory := b.kernel("memory.limit_in_bytes", "memory.max")
		swap := b.kernel("memory.memsw.limit_in_bytes", "memory.swap.max")
		cpus := b.kernel("cpuset.effective_cpus", "cpuset.cpus.effective")
		noSwap := "0"
		if mode == cgroups.V1 {
			noSwap = s.memory // v1 counts both together
		}
		if memory != s.memory || cpus != s.cpus || swap != noSwap {
			return fmt.Errorf("after %+v: memory %s, swap %s, cpus %s", s.change, memory, swap, cpus)
		}
	}
	return b.refuseLess()
}

// refuseLess asks for less memory than is held: the kernel of v2 would kill for it.
func (b *box) refuseLess() error {
	run := func(script string) error {
		p, err := b.shim.Exec(wire.ExecRequest{Args: []string{"/bin/sh", "-c", script}}, wire.ExecStdio{})
		if err != nil {
			return err
		}
		if code, err := p.Wait(); err != nil || code != 0 {
			return fmt.Errorf("%s: code %d, %v", script, code, err)
		}
		return nil
	}
	if err := run("dd if=/dev/zero of=/dev/shm/f bs=1M count=30"); err != nil {
		return err
	}
	err := b.shim.Update(cgroups.Limits{MemoryBytes: 16 << 20})
	if err == nil || !strings.Contains(err.Error(), "cannot be taken away, more than 16 MiB") {
		return fmt.Errorf("less than is held: %v", err)
	}
	if memory := b.kernel("memory.limit_in_bytes", "memory.max"); memory != "100663296" {
		return fmt.Errorf("refused, and the limit is %s", memory)
	}
	if err := run("rm /dev/shm/f"); err != nil {
		return err
	}
	if s, err := b.shim.Stats(); err != nil || s.OOMKills > 0 {
		return fmt.Errorf("after it: %+v, %v", s, err)
	}
	return nil
}

// exec runs a command in the container, which is on its cores and below its
// device rules too.
func (b *box) exec() error {
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	script := "grep Cpus_allowed_list /proc/self/status; mknod /dev/other c 195 1; cat /dev/other; exit 6"
	p, err := b.shim.Exec(wire.ExecRequest{Args: []string{"/bin/sh", "-c", script}}, wire.ExecStdio{Stdout: write, Stderr: write})
	write.Close()
	if err != nil {
		return err
	}
	out, err := io.ReadAll(read)
	if err != nil {
		return err
	}
	code, err := p.Wait()
	const want = "Cpus_allowed_list:\t0\ncat: can't open '/dev/other': Operation not permitted\n"
	if err != nil || code != 6 || string(out) != want {
		return fmt.Errorf("%v, code %d, output %q", err, code, out)
	}
	return nil
}

// killFrozen ends a container that is frozen, with everything in it.
func (b *box) killFrozen() error {
	g, err := cgroups.Find(b.req.CgroupPath)
	if err != nil {
		return err
	}
	if err := b.shim.Stand(true); err != nil {
		return err
	}
	pids, err := g.Pids()
	if err != nil || len(pids) < 2 {
		return fmt.Errorf("processes %v, %v", pids, err)
	}
	if err := b.shim.Kill(); err != nil {
		return err
	}
	exit, err := b.exit()
	if err != nil || !exit.Stopped || exit.Signal != int(unix.SIGKILL) || exit.OOMKilled {
		return fmt.Errorf("%v, exit %+v", err, exit)
	}
	for _, pid := range pids {
		if err := unix.Kill(pid, 0); !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("process %d of %v: %v", pid, pids, err)
		}
	}
	return errors.Join(gone(b), oci.Remove(b.dir))
}

// checkStop asks first: the program handles the signal.
func checkStop() error {
	b := newBox("stop", `trap 'echo asked; exit 9' TERM; echo ready; sleep 1000 & wait`)
	if err := b.startElsewhere(); err != nil {
		return err
	}
	if err := b.awaitRunning(); err != nil {
		return err
	}
	if err := b.shim.Stop(context.Background(), syscall.SIGTERM, patience); err != nil {
		return err
	}
	exit, err := b.exit()
	if err != nil || !exit.Stopped || exit.Code != 9 || b.log() != "ready\nasked\n" {
		return fmt.Errorf("%v, exit %+v, log %q", err, exit, b.log())
	}
	return errors.Join(gone(b), oci.Remove(b.dir))
}
