package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// waits is sbatch -W of a script with a name, in the background.
func (s *site) waits(options ...string) *started {
	s.t.Helper()
	b := &started{Cmd: exec.Command(filepath.Join(s.dir, "sbatch"), append([]string{"-Q", "-W", "--mem=1G"}, options...)...)}
	b.Env = append(cleanEnv(), "GBATCH_CONTROLLER=unix://"+s.socket(), "GBATCH_SLURM_IMAGE="+image)
	b.Stdout, b.Stderr = &b.out, &b.err
	if err := b.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = b.Process.Kill() })
	return b
}

// TestWaitedEnds: sbatch -W ends as Slurm's, however the job ends. What Slurm 22.05
// does is told where it is otherwise.
func TestWaitedEnds(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newSite(t, siteOptions{})
	env := []string{"GBATCH_SLURM_IMAGE=" + image}
	slurm := func(line string) string {
		t.Helper()
		words := strings.Fields(line)
		r := s.slurm(env, "", words[0], words[1:]...)
		if r.code != 0 {
			t.Fatalf("%s: %v", line, r)
		}
		return strings.TrimSpace(r.out)
	}
	slurm("sbatch --version")
	number := func(name string) (id string) {
		t.Helper()
		eventually(t, name+" is there", func() bool {
			id, _, _ = strings.Cut(slurm("squeue -h -o %F -n "+name), "\n")
			return id != ""
		})
		return id
	}
	running := func(name string) string {
		t.Helper()
		id := number(name)
		s.waitRunning(id)
		return id
	}
	const sleeps, traps, fails = "echo told; sleep 1000", "trap 'exit 0' TERM; echo told; sleep 1000 & wait", "trap 'exit 5' TERM; echo told; sleep 1000 & wait"
	all := map[string]*started{}
	want := map[string]int{}
	begin := func(name string, code int, options ...string) {
		all[name], want[name] = s.waits(append([]string{"-c1", "-J", name}, options...)...), code
	}
	begin("cancelled", 1, "--wrap", sleeps)
	slurm("scancel " + running("cancelled"))
	begin("held", 1, "--hold", "--wrap", sleeps) // 0 with Slurm
	slurm("scancel " + number("held"))
	begin("killed", 1, "--wrap", "kill -9 $$")
	begin("tasks", 5, "-a", "1-3", "--wrap", "[ $SLURM_ARRAY_TASK_ID = 2 ] && kill -9 $$; exit 5")
	for name, script := range map[string]string{"limited": sleeps, "trapped": traps, "answered": fails} {
		begin(name, map[string]int{"limited": 1, "trapped": 0, "answered": 5}[name], "-t", "1", "--wrap", script)
		id := running(name)
		eventually(t, name+" listens", func() bool { return s.run("glog", id).out != "" })
		s.must("gqueue", "update", id, "--time=1s")
	}
	first := slurm("sbatch -Q --parsable --mem=1G --hold --wrap true")
	begin("never", 1, "-d", "afterok:"+first, "--wrap", "true") // waits for ever with Slurm, or 0
	number("never")
	slurm("scancel " + first)
	begin("again", 4, "--wrap", "[ ${SLURM_RESTART_COUNT:-0} = 0 ] && sleep 1000; exit 4")
	slurm("scontrol requeue " + running("again"))
	for name, b := range all {
		if got := b.code(); got != want[name] {
			t.Errorf("%s: %d, want %d: %s", name, got, want[name], b.err.String())
		}
	}
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if ignored(t, sig) {
			continue
		}
		name := "left-" + sig.String()
		b := s.waits("-J", name, "--wrap", sleeps)
		id := running(name)
		if err := b.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		_ = b.Wait()
		by, _ := b.ProcessState.Sys().(syscall.WaitStatus)
		if !by.Signaled() || by.Signal() != sig || slurm("squeue -h -o %T -j "+id) != "RUNNING" {
			t.Errorf("sbatch -W, sent %v, ended by %v; the job is %q: %s", sig, b.ProcessState, slurm("squeue -h -o %T -j "+id), b.err.String())
		}
		slurm("scancel " + id)
	}
}
