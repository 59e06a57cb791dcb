package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// toilWorkflow has two jobs beside each other, one that takes what they give, and one
// that fails where it is asked to.
const toilWorkflow = `import os
from toil.common import Toil
from toil.job import Job

def square(job, n):
    return "%d with %s" % (n * n, os.environ["SLURM_CPUS_PER_TASK"])

def add(job, values):
    return "+".join(values)

def fail(job):
    raise RuntimeError("this one fails")

def start(job, bad):
    if bad:
        return job.addChildJobFn(fail, cores=1, memory="300M", disk="10M").rv()
    values = [job.addChildJobFn(square, n, cores=2, memory="300M", disk="10M").rv() for n in (3, 4)]
    return job.addFollowOnJobFn(add, values, cores=1, memory="300M", disk="10M").rv()

if __name__ == "__main__":
    parser = Job.Runner.getDefaultArgumentParser()
    parser.add_argument("--bad", action="store_true")
    options = parser.parse_args()
    with Toil(options) as toil:
        print(toil.start(Job.wrapJobFn(start, options.bad, cores=1, memory="300M", disk="10M")))
`

// toilCWL is a workflow of two tools, of which the second reads what the first wrote.
const toilCWL = `cwlVersion: v1.2
class: Workflow
inputs: {words: string}
outputs: {count: {type: File, outputSource: count/out}}
steps:
  write:
    in: {words: words}
    out: [out]
    run:
      class: CommandLineTool
      requirements: {ResourceRequirement: {coresMin: 2, ramMin: 300}}
      baseCommand: [echo]
      inputs: {words: {type: string, inputBinding: {}}}
      outputs: {out: stdout}
      stdout: words.txt
  count:
    in: {text: write/out}
    out: [out]
    run:
      class: CommandLineTool
      requirements: {ResourceRequirement: {coresMin: 1, ramMin: 300}}
      baseCommand: [wc, -w]
      inputs: {text: File}
      stdin: $(inputs.text.path)
      outputs: {out: stdout}
      stdout: count.txt
`

// TestToil: Debian's Toil submits the jobs of a workflow as their time comes, gives
// each what the others returned, and learns of one that fails. So do workflows in CWL.
func TestToil(t *testing.T) {
	t.Parallel() // it mostly waits
	s, dir := workshop(t, siteOptions{nodes: 2}, "toil", "toil-cwl-runner")
	for name, text := range map[string]string{"workflow.py": toilWorkflow, "workflow.cwl": toilCWL} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := func(program []string, store string, more ...string) result {
		words := append(program, "--batchSystem=slurm", "--disableCaching", "--disableChaining", "--statePollingWait=1", "--workDir="+dir, "--retryCount=0", store)
		return s.tool(dir, append(words, more...)...)
	}
	python := []string{"python3", "workflow.py"}
	if r := run(python, "good"); r.code != 0 || r.out != "9 with 2+16 with 2\n" {
		t.Errorf("%v", r)
	}
	for _, id := range []string{"1", "2", "3", "4"} {
		if diff := cmp.Diff(finished, endOf(s.job(id))); diff != "" {
			t.Errorf("job %s (-want +got):\n%s%s", id, diff, s.run("gqueue", "show", id).out)
		}
	}
	if r := run(python, "bad", "--bad"); r.code == 0 || !strings.Contains(r.err, "this one fails") {
		t.Errorf("a job that fails: %v", r)
	}
	r := run([]string{"toil-cwl-runner", "--outdir=" + dir, "--no-container"}, "--jobStore=cwl", "workflow.cwl", "--words=one two three")
	if count, err := os.ReadFile(filepath.Join(dir, "count.txt")); err != nil || r.code != 0 || string(count) != "3\n" {
		t.Errorf("%q, %v: %v", count, err, r)
	}
}
