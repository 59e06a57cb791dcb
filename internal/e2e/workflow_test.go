package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const snakefile = `rule all:
    input: "both.txt"
rule part:
    output: "part-{n}.txt"
    threads: 2
    resources: mem_mb=300, runtime=5
    shell: "echo part {wildcards.n} with {threads} of $SLURM_CPUS_PER_TASK > {output}"
rule both:
    input: expand("part-{n}.txt", n=["a", "b"])
    output: "both.txt"
    resources: mem_mb=300, runtime=5
    shell: "cat {input} > {output}"
rule bad:
    output: "bad.txt"
    resources: mem_mb=300, runtime=5
    shell: "exit 3"
`

// snakeStatus is what Snakemake calls to learn how a job is.
const snakeStatus = `#!/bin/sh
case $(sacct -X -n -P --format=State -j "$1") in
COMPLETED) echo success ;;
FAILED | CANCELLED* | TIMEOUT | OUT_OF_MEMORY | NODE_FAIL) echo failed ;;
*) echo running ;;
esac
`

// TestSnakemake: Debian's Snakemake submits the rules of a workflow in their order,
// with their threads, and learns of one that fails.
func TestSnakemake(t *testing.T) {
	t.Parallel() // it mostly waits
	s, dir := workshop(t, siteOptions{nodes: 2}, "snakemake")
	for name, text := range map[string]string{"Snakefile": snakefile, "status.sh": snakeStatus} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	run := func(target string) result {
		return s.tool(dir, "snakemake", "-j4", "--latency-wait=60", "--max-status-checks-per-second=10", "--cluster-status=./status.sh", "--cluster-cancel=scancel",
			"--cluster=sbatch --parsable -c {threads} --mem={resources.mem_mb}M -t {resources.runtime}", target)
	}
	r := run("all")
	both, err := os.ReadFile(filepath.Join(dir, "both.txt"))
	if diff := cmp.Diff("part a with 2 of 2\npart b with 2 of 2\n", string(both)); diff != "" || r.code != 0 || err != nil {
		t.Errorf("%v (-want +got):\n%s%v", err, diff, r)
	}
	for _, id := range []string{"1", "2", "3"} {
		if diff := cmp.Diff(finished, endOf(s.job(id))); diff != "" {
			t.Errorf("job %s (-want +got):\n%s%s", id, diff, s.run("gqueue", "show", id).out)
		}
	}
	if r := run("bad"); r.code != 1 {
		t.Errorf("a rule that fails: %v", r)
	}
}

// daskClient is what dask-jobqueue does: a scheduler here, workers by sbatch, which
// find it at this machine's address, and scancel when they are no longer needed.
const daskClient = `
import subprocess
from distributed import Client, LocalCluster
with LocalCluster(n_workers=0, host="198.51.100.78", dashboard_address=None) as cluster, Client(cluster) as client:
    script = """#!/bin/bash
#SBATCH -J dask-worker
#SBATCH -o worker-%%J.out
#SBATCH -n 1
#SBATCH -N 1
#SBATCH --cpus-per-task=1
#SBATCH --mem=1G
#SBATCH -t 00:10:00
#SBATCH --container-network=host
/usr/bin/python3 -m distributed.cli.dask_worker %s --nthreads 1 --no-nanny --no-dashboard --host 198.51.100.78 --local-directory /tmp
""" % cluster.scheduler_address
    ids = [subprocess.run(["sbatch", "--parsable"], input=script, text=True, stdout=subprocess.PIPE, check=True).stdout.strip() for _ in range(2)]
    client.wait_for_workers(2, timeout=300)
    print(sum(client.gather(client.map(lambda n: n * n, range(100)))))
    where = client.run(lambda: __import__("os").environ["SLURM_JOB_ID"])
    print(sorted(where.values()) == sorted(ids))
    subprocess.run(["scancel"] + ids, check=True)
`

// TestDask: workers of Debian's Dask, submitted as dask-jobqueue does, meet their
// scheduler and work for it.
func TestDask(t *testing.T) {
	if out, err := exec.Command("ip", "addr", "add", "198.51.100.78/32", "dev", "lo").CombinedOutput(); err != nil {
		t.Fatalf("an address that jobs may reach: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("ip", "addr", "del", "198.51.100.78/32", "dev", "lo").Run() })
	s, dir := workshop(t, siteOptions{nodeNetwork: ", allowHost: true", ctldConfig: "projects: [{name: default, hostNetwork: true}]\n"}, "dask-worker")
	r := s.tool(dir, "python3", "-c", daskClient)
	if r.code != 0 || r.out != "328350\nTrue\n" {
		t.Errorf("%v", r)
	}
	for _, id := range []string{"1", "2"} {
		s.wait(id)
	}
}
