package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/job"
)

// file submits a job file as it is and returns the job's number.
func (s *site) file(content string, flags ...string) string {
	s.t.Helper()
	return strings.TrimSpace(s.must("gsubmit", append(flags, s.write(content))...))
}

// inProject is a file in the project's storage, with lines.
func (s *site) inProject(name, text string) string {
	s.t.Helper()
	path := filepath.Join(s.project(), name)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		s.t.Fatal(err)
	}
	for _, dir := range []string{s.project(), filepath.Dir(path)} {
		if err := os.Chmod(dir, 0o777); err != nil { // jobs are not root here
			s.t.Fatal(err)
		}
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		s.t.Fatal(err)
	}
	return path
}

func (s *site) well(id string) {
	s.t.Helper()
	if d := s.wait(id); d.State != job.Finished {
		s.t.Fatalf("want it to finish:\n%s%s", describe(d), s.run("glog", id).out)
	}
}

// TestIndexedJobs shard a file: a manifest of Kubernetes and a job of CCluster.
func TestIndexedJobs(t *testing.T) {
	s := newSite(t, siteOptions{ctldConfig: "instanceTypes: {'7': {cpus: 1, cpuMemoryGb: 1}}\n"})
	s.inProject("numbers", "1\n2\n3\n4\n5\n6\n7\n")
	shard := `awk -v i=$JOB_COMPLETION_INDEX 'NR % 3 == i { s += $1 } END { print s }' /project/numbers > /project/k-$JOB_COMPLETION_INDEX`
	kube := s.file(fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata: {name: shards}
spec:
  completions: 3
  parallelism: 2
  completionMode: Indexed
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: c
        image: %s
        command: [sh, -c, %q]
        resources: {limits: {cpu: 1, memory: 64Mi}}
        volumeMounts: [{name: p, mountPath: /project}]
      volumes: [{name: p, hostPath: {path: /project}}]
`, image, shard))
	s.well(kube)
	one := s.file(fmt.Sprintf(`{"name": "one", "hardware_instance_id": 7, "image_url": %q, "completions": 2, "backoff_limit": 0,
		"command": "/bin/sh -c echo $JOB_COMPLETION_INDEX of $JOB_COMPLETIONS; test $JOB_COMPLETION_INDEX = 0"}`, image))
	if d := s.wait(one); d.State != job.Failed || job.Reason(d.Reason) != job.BackoffLimit {
		t.Errorf("an index that fails:\n%s", describe(d))
	}
	if out := s.must("glog", one+"_0"); out != "0 of 2\n" {
		t.Errorf("index 0 printed %q", out)
	}
	var got []string
	for i := range 3 {
		got = append(got, lines(t, filepath.Join(s.project(), fmt.Sprintf("k-%d", i)))...)
	}
	if diff := cmp.Diff([]string{"9", "12", "7"}, got); diff != "" {
		t.Errorf("sums of the shards (-want +got):\n%s", diff)
	}
	if out := s.must("gqueue", "show", "--as", "k8s", kube); !strings.Contains(out, "Complete") {
		t.Errorf("in Kubernetes' words:\n%s", out)
	}
}

// TestGangOfDstack: three nodes exchange data over TCP, by dstack's variables.
func TestGangOfDstack(t *testing.T) {
	s := newSite(t, siteOptions{nodes: 3})
	id := s.file(fmt.Sprintf(`
type: task
name: exchange
nodes: 3
image: %s
env:
  - GREETING=hello
commands:
  - test $(wc -l < $DSTACK_MPI_HOSTFILE) = $DSTACK_NODES_NUM
  - |
    if [ $DSTACK_NODE_RANK = 0 ]; then
      nc -ll -p $MASTER_PORT -e sh -c 'cat >> /data/heard' &
      until [ "$(cat /data/heard 2>/dev/null | wc -l)" = 2 ]; do sleep 0.1; done
      kill $!
    else
      until echo $GREETING from $DSTACK_NODE_RANK | nc $DSTACK_MASTER_NODE_IP $MASTER_PORT; do sleep 0.1; done
    fi
volumes: [/project/dir:/data]
resources: {cpu: 1, memory: 1GB}
max_duration: 10m
`, image))
	s.well(id)
	got := lines(t, filepath.Join(s.project(), "dir/heard")) // by words
	slices.Sort(got)
	if diff := cmp.Diff([]string{"1", "2", "from", "from", "hello", "hello"}, got); diff != "" {
		t.Errorf("rank 0 heard (-want +got):\n%s", diff)
	}
	if d := s.job(id); len(d.Nodes) != 3 {
		t.Errorf("it ran on %v", d.Nodes)
	}
	groupsOfDstack(t, s)
}

// groupsOfDstack: nodes of two groups run what their group does, and find each other by
// the addresses that the commands name.
func groupsOfDstack(t *testing.T, s *site) {
	id := strings.TrimSpace(s.must("gsubmit", s.write(fmt.Sprintf(`
type: task
name: groups
image: %s
stop_criteria: master-done
env: [PRICE=$$5]
groups:
  - name: head
    commands:
      - nc -ll -p 7000 -e sh -c 'cat >> /data/groups' &
      - until [ "$(cat /data/groups 2>/dev/null | wc -l)" = 2 ]; do sleep 0.1; done
      - test ${{ groups[0].nodes[0].IP_ADDRESS }} = $DSTACK_MASTER_NODE_IP
      - echo "head $PRICE" ${{ run.args }} >> /data/groups
    resources: {cpu: 1, memory: 1GB}
  - nodes: 2
    commands:
      - until echo 'worker at ${{groups[0].nodes[0].IP_ADDRESS}}' | sed "s/ at $DSTACK_MASTER_NODE_IP/ at head/" | nc ${{ groups[0].nodes[0].IP_ADDRESS }} 7000; do sleep 0.1; done
      - sleep infinity
    resources: {cpu: 1, memory: 512MB}
volumes: [/project/dir:/data]
max_duration: 10m
`, image)), "--", "two words", "x"))
	s.well(id)
	got := strings.Join(lines(t, filepath.Join(s.project(), "dir/groups")), " ")
	if want := "worker at head worker at head head $$5 two words x"; got != want {
		t.Errorf("the groups wrote %q, want %q", got, want)
	}
}

// TestGroupsWithOtherGPUs: a task of dstack whose groups ask for different GPUs, or none, is
// one job; each node has what its group asks for, and all start together.
func TestGroupsWithOtherGPUs(t *testing.T) {
	s := newSite(t, siteOptions{nodes: 3, nodeGPUs: []string{"h100:2", "a100:4"}})
	task := func(last string) string {
		return fmt.Sprintf(`
type: task
name: groups
image: %s
groups:
  - name: head
    commands: [echo $DSTACK_GPUS_PER_NODE of $DSTACK_GPUS_NUM on $GBATCH_MEMORY_BYTES > /data/head; cut -d" " -f2 $DSTACK_MPI_HOSTFILE > /data/slots]
    resources: {cpu: 1, memory: 1GB}
  - name: prefill
    commands: [echo $DSTACK_GPUS_PER_NODE $DSTACK_NODE_RANK $GBATCH_NUM_GPUS > /data/prefill]
    resources: {cpu: 1, memory: 2GB, gpu: "A100:3"}
  - name: decode
    commands: [echo $DSTACK_GPUS_PER_NODE $DSTACK_NODE_RANK > /data/decode]
    resources: {cpu: 1, memory: 1GB, gpu: %q}
volumes: [/project/dir:/data]
max_duration: 10m
`, image, last)
	}
	busy := s.submit(doc{name: "busy", gpus: 1, resources: map[string]any{"gpuModel": []string{"H100"}}, command: idle})
	s.waitRunning(busy)
	id := s.file(task("H100:2"))
	eventually(t, "it waits for the H100", func() bool { return strings.Contains(s.job(id).ReasonText, "group 2: 0 of 1 nodes have room") })
	if out := s.must("gqueue", "explain", id); !strings.Contains(out, "group 0: has room now; group 1: has room now") || !strings.Contains(out, "group 2: 1 of 2 GPUs free") {
		t.Errorf("why it waits:\n%s", out)
	}
	s.must("gcancel", busy)
	s.well(id)
	d := s.job(id)
	if d.GPUs != 5 || len(d.Nodes) != 3 || d.Nodes[1] != s.nodeName(1) || d.Nodes[2] != s.nodeName(0) {
		t.Errorf("it had %v GPUs on %v", d.GPUs, d.Nodes)
	}
	for name, want := range map[string]string{"head": "0 of 5 on 1073741824", "prefill": "3 1 3", "decode": "2 2"} {
		if got := strings.Join(lines(t, filepath.Join(s.project(), "dir", name)), " "); got != want {
			t.Errorf("%s had %q, want %q", name, got, want)
		}
	}
	if r := s.run("gsubmit", s.write(task("H100:3"))); r.code != 6 || !strings.Contains(r.err, "group 2: ") {
		t.Errorf("more GPUs than a node has: %v", r)
	}
	if r := s.run("gsubmit", "--gpus", "1", s.write(task("H100:2"))); r.code == 0 || !strings.Contains(r.err, "--gpus: is for jobs whose nodes are alike") {
		t.Errorf("other amounts by a flag: %v", r)
	}
}

// TestTaskOfNVCT: instance type, arguments, secrets, progress and results.
func TestTaskOfNVCT(t *testing.T) {
	s := newSite(t, siteOptions{
		ctldConfig: "results: file:///project/results\ninstanceTypes: {GPU.H100_1x: {gpus: 1, gpuModel: [H100], cpus: 1, cpuMemoryGb: 1}}\n",
		nodeConfig: "gpu: {simulate: 'h100:2'}\n"})
	work := `test "$KEY" = hush && grep -q hush /var/secrets/secrets.json || exit 3
echo $NVCT_TASK_NAME > $NVCT_RESULTS_DIR/name
echo '{"percentComplete":100}' > $NVCT_PROGRESS_FILE_PATH`
	id := s.file(fmt.Sprintf(`{"name": "tune", "gpuSpecification": {"gpu": "H100", "instanceType": "GPU.H100_1x", "backend": "GFN"}, "containerImage": %q,
		"containerArgs": "sh -c '%s'", "maxRuntimeDuration": "PT10M", "resultHandlingStrategy": "UPLOAD", "resultsLocation": "org/model",
		"secrets": [{"name": "KEY", "value": "hush"}]}`, image, strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(work, `'`, `'\\''`), `"`, `\"`), "\n", `\n`)))
	s.well(id)
	if got := lines(t, filepath.Join(s.project(), "results/org/model/name")); !slices.Equal(got, []string{"tune"}) {
		t.Errorf("results: %q", got)
	}
	if out := s.must("gqueue", "show", "--as", "nvct", id); !strings.Contains(out, "COMPLETED") {
		t.Errorf("in NVCT's words:\n%s", out)
	}
	if r := s.run("gsubmit", s.write(fmt.Sprintf(`{"name": "x", "gpuSpecification": {"gpu": "H100", "instanceType": "LARGE"}, "containerImage": %q}`, image))); r.code == 0 || !strings.Contains(r.err, "GPU.H100_1x") {
		t.Errorf("an unknown instance type: %v", r)
	}
}

// TestJobOfTAO replaces an earlier one of its id, and saves what it made.
func TestJobOfTAO(t *testing.T) {
	s := newSite(t, siteOptions{})
	s.inProject("in/train.json", "data\n")
	tao := func(command string) string {
		return s.file(fmt.Sprintf(`{"image": %q, "command": ["sh", "-c", %q], "gpu_count": 0, "job_id": "7", "env_vars": {"TAO_RESULTS_ROOT": "/project/runs"},
			"inputs": {"/data/train.json": "/project/in/train.json"}, "outputs": ["/results/"]}`, image, command))
	}
	first := tao("trap 'exit 1' TERM; sleep 1000 & wait")
	s.waitRunning(first)
	second := tao("mkdir /results && cp /data/train.json /results/model && echo $TAO_JOB_ID")
	s.well(second)
	if d := s.job(first); d.State != job.Cancelled || s.job(second).Started.Before(d.Ended) {
		t.Errorf("the first one:\n%s", describe(d))
	}
	if got := lines(t, filepath.Join(s.project(), "runs/7/results/model")); !slices.Equal(got, []string{"data"}) {
		t.Errorf("results: %q", got)
	}
	if out := s.must("glog", second); out != "7\n" {
		t.Errorf("it printed %q", out)
	}
}

// TestScriptsOfSlurm: an array, a script that waits for it, and srun.
func TestScriptsOfSlurm(t *testing.T) {
	s := newSite(t, siteOptions{})
	array := s.file(`#!/bin/sh
#SBATCH --job-name=sweep --array=1-5:2%2
#SBATCH --mem=64M --time=5 --partition=gpu
#SBATCH --container-mounts=/project:/project
#SBATCH --output=%x.out
echo "$SLURM_ARRAY_TASK_ID $SLURM_ARRAY_TASK_COUNT $SLURM_ARRAY_TASK_MIN-$SLURM_ARRAY_TASK_MAX" > /project/$SLURM_ARRAY_JOB_ID-$SLURM_ARRAY_TASK_ID
`, "--image", image)
	after := s.file(`#!/bin/sh
#SBATCH --image=` + image + ` -n 2 --mem-per-cpu=64
#SBATCH --container-mounts=/project --dependency=afterok:` + array + `
srun sh -c 'cat /project/` + array + `-* | sort | sed -n "$((SLURM_PROCID + 1))p" > /project/sum-$SLURM_PROCID'
`)
	s.well(after)
	s.well(array)
	var got []string
	for i := range 2 {
		text, err := os.ReadFile(filepath.Join(s.project(), fmt.Sprintf("sum-%d", i)))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.TrimSpace(string(text)))
	}
	if diff := cmp.Diff([]string{"1 3 1-5", "3 3 1-5"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r := s.run("gsubmit", s.write("#!/bin/sh\n#SBATCH --licenses=x;y --mem=lots\ntrue\n"))
	if r.code != 2 || !strings.Contains(r.err, "--licenses (line 2)") || !strings.Contains(r.err, "--mem (line 2)") {
		t.Errorf("a bad script: %v", r)
	}
	if r := s.run("gsubmit", s.write("#!/bin/sh\n#SBATCH --mem=1G\ntrue\n")); r.code == 0 || !strings.Contains(r.err, "names no container image") {
		t.Errorf("a script without an image: %v", r)
	}
}
