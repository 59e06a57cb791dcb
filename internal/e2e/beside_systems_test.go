package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"gbatch/internal/client"
)

// besideCores gives the node of the comparison all cores of the machine: each of
// its jobs has one that no other one has.
func besideCores(s *site) {
	d := s.nodes[0]
	b, err := os.ReadFile(d.config)
	if err == nil {
		err = os.WriteFile(d.config, []byte(strings.Replace(string(b), "cores: 8\n", fmt.Sprintf("cores: %d\n", runtime.NumCPU()), 1)), 0o644)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// besideGbatch is gbatch, whose jobs are containers.
func besideGbatch(s *site, jobs int) *competitor {
	program := func(name string) string { return filepath.Join(bin, name) }
	one := s.write(doc{command: []string{"true"}}.json())
	array := s.write(doc{command: []string{"true"}, gbatch: map[string]any{"tasks": fmt.Sprint("1-", jobs)}}.json())
	return &competitor{
		held: []string{program("gsubmit"), "--hold", one}, ready: []string{program("gsubmit"), one}, array: []string{program("gsubmit"), array},
		wait: []string{program("gsubmit"), "--wait", one},
		list: []string{program("gqueue")}, listJSON: []string{program("gqueue"), "--json"},
		cancel: []string{program("gcancel"), "--me", "--yes"},
		env:    []string{"GBATCH_CONTROLLER=unix://" + s.socket()},
		left: func() int {
			list, err := s.api.Jobs(s.t.Context(), client.JobFilter{Limit: 1})
			if err != nil {
				s.t.Fatal(err)
			}
			return len(list.Jobs)
		},
		trouble: func() string { return fileEnd(s.ctld.log) + fileEnd(s.nodes[0].log) },
	}
}

// startSlurm starts Debian's Slurm with directories of its own, as one node with
// 128 places for jobs without containers, and ends it with the test.
func startSlurm(t *testing.T, jobs int) *competitor {
	t.Helper()
	for _, program := range []string{"slurmctld", "slurmd", "munged", "sbatch"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("NOT MEASURED: %s is not here: apt-get install slurmctld slurmd slurm-client munge", program)
		}
	}
	// Slurm takes no address for one where there is none but 127.0.0.1.
	if out, err := exec.Command("ip", "addr", "add", "198.51.100.77/32", "dev", "lo").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("ip", "addr", "del", "198.51.100.77/32", "dev", "lo").Run() })
	dir, err := os.MkdirTemp("/tmp", "gbatch-beside-slurm-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	host, _, _ = strings.Cut(host, ".")
	at := func(name string) string { return filepath.Join(dir, name) }
	put := func(name, text string) {
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("key", strings.Repeat("not a secret: only this comparison has it. ", 30))
	put("cgroup.conf", "CgroupPlugin=cgroup/v1\n")
	put("true.sh", "#!/bin/sh\ntrue\n")
	put("slurm.conf", fmt.Sprintf(slurmConf, host, dir, jobs+1))
	conf := at("slurm.conf")
	inNamespace := func(args ...string) { besideDaemon(t, at(args[0]+".out"), args...) }
	// munged refuses to be who others can write for: the directory is root's.
	inNamespace("munged", "--foreground", "--force", "--key-file="+at("key"), "--socket="+at("munge.socket"),
		"--pid-file="+at("munged.pid"), "--log-file="+at("munged.log"), "--seed-file="+at("munged.seed"))
	eventually(t, "munged answers", func() bool { _, err := os.Stat(at("munge.socket")); return err == nil })
	inNamespace("slurmctld", "-D", "-f", conf)
	inNamespace("slurmd", "-D", "-f", conf)
	submit := []string{"sbatch", "--parsable", "--output=/dev/null", "--chdir=/tmp"}
	with := func(args ...string) []string { return append(append([]string{}, submit...), args...) }
	c := &competitor{
		held: with("--hold", at("true.sh")), ready: with(at("true.sh")), array: with(fmt.Sprint("--array=1-", jobs), at("true.sh")),
		wait: with("--wait", at("true.sh")),
		list: []string{"squeue"}, listJSON: []string{"squeue", "--json"},
		cancel: []string{"scancel", "--user=root"}, env: []string{"SLURM_CONF=" + conf},
		trouble: func() string { return fileEnd(at("slurmctld.out")) + fileEnd(at("slurmd.out")) },
	}
	c.left = func() int {
		return strings.Count(c.must(t, []string{"squeue", "--noheader", "--states=PENDING,RUNNING", "--format=%i"}), "\n")
	}
	var r result
	if !poll(patience, func() bool {
		cmd := exec.Command("sinfo", "--noheader", "--format=%T")
		cmd.Env = append(cleanEnv(), c.env...)
		r = execute(cmd)
		return r.code == 0 && strings.TrimSpace(r.out) == "idle"
	}) {
		t.Fatalf("Slurm's node is not idle: %v\n%s%s", r, c.trouble(), fileEnd(at("munged.out")))
	}
	return c
}

// besideDaemon starts a daemon in a mount namespace of its own, and ends it with the test.
func besideDaemon(t *testing.T, log string, args ...string) {
	t.Helper()
	f, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd := exec.Command("unshare", append([]string{"--mount"}, args...)...)
	cmd.Stdout, cmd.Stderr, cmd.Env = f, f, cleanEnv()
	if err := startChild(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil && !errors.As(err, new(*exec.ExitError)) {
			t.Log(strconv.Quote(args[0]), err)
		}
	})
}

// fileEnd is what a log says last.
func fileEnd(path string) string {
	b, _ := os.ReadFile(path)
	return filepath.Base(path) + ":\n" + string(b[max(0, len(b)-2000):]) + "\n"
}

// slurmConf is Slurm at its fastest: nothing that watches or accounts, and what its
// guide to throughput names.
const slurmConf = `ClusterName=beside
SlurmctldHost=%[1]s(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket=%[2]s/munge.socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=%[2]s/state
SlurmdSpoolDir=%[2]s/spool
SlurmctldPidFile=%[2]s/slurmctld.pid
SlurmdPidFile=%[2]s/slurmd.pid
SlurmctldPort=26817
SlurmdPort=26818
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,defer_batch,max_rpc_cnt=0
SlurmdParameters=config_overrides
ReturnToService=2
MinJobAge=2
MaxJobCount=100000
MaxArraySize=%[3]d
SlurmctldDebug=error
SlurmdDebug=error
NodeName=%[1]s NodeAddr=127.0.0.1 CPUs=128 RealMemory=1024 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP MaxTime=INFINITE
`
