package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gbatch/internal/job"
)

// podManifest has a sidecar, which serves what an init container made, and a container beside
// the job's own; each says something of what it sees.
const podManifest = `apiVersion: batch/v1
kind: Job
metadata: {name: pod}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: POLICY
      terminationGracePeriodSeconds: 30
      initContainers:
      - {name: make, image: OTHER, command: [sh, -c, 'cp /app/run /w/run'], volumeMounts: [{name: work, mountPath: /w}]}
      - name: side
        image: OTHER
        restartPolicy: Always
        command: [sh, -c, 'trap "echo side ends; exit 0" TERM; cat /data/run; echo "$TOKEN" | wc -c; touch /data/up; while :; do nc -l -p 7001 < /data/run || sleep 0.1; done & while :; do sleep 0.1; done']
        env: [{name: TOKEN, valueFrom: {secretKeyRef: {name: keys, key: TOKEN}}}]
        volumeMounts: [{name: work, mountPath: /data}]
        resources: {limits: {memory: 64Mi}}
      containers:
      - name: main
        image: IMAGE
        command: [sh, -c, 'test ! -e /app/run; until nc 127.0.0.1 7001 < /dev/null > /m/got 2> /dev/null && [ -s /m/got ]; do sleep 0.1; done; cat /m/got; until [ -e /m/helped ]; do sleep 0.1; done; echo main ends; exit CODE']
        resources: {limits: {cpu: "1", memory: 128Mi}}
        volumeMounts: [{name: work, mountPath: /m}]
      - name: helper
        image: OTHER
        securityContext: {runAsUser: 1001}
        command: [sh, -c, 'trap "echo helper asked; exit 0" TERM; id -u; touch /h/helped; HELP']
        volumeMounts: [{name: work, mountPath: /h}]
      volumes: [{name: work, emptyDir: {}}]
`

// labelled are the lines of a log that are of one container; "": of the job's own.
func labelled(log, name string) (out []string) {
	for line := range strings.Lines(log) {
		rest, is := strings.CutPrefix(line, "["+name+"] ")
		if name == "" {
			rest, is = line, !strings.HasPrefix(line, "[") && !strings.HasPrefix(line, "gbatch:")
		}
		if rest = strings.TrimSpace(rest); is && rest != "Terminated" {
			out = append(out, rest)
		}
	}
	return out
}

// TestPodOfJob: containers of a Kubernetes Job run together, each in its image, and see the
// same volumes and each other on their loopback; the job's end is that of all but sidecars.
func TestPodOfJob(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newSite(t, siteOptions{})
	const value = "s3cr3t-in-pod"
	submit := func(policy, code, help string) string {
		file := s.write("apiVersion: v1\nkind: Secret\nmetadata: {name: keys}\nstringData: {TOKEN: " + value + "}\n")
		id := s.file(strings.NewReplacer("OTHER", tools(t), "IMAGE", image, "POLICY", policy, "CODE", code, "HELP", help).Replace(podManifest), "--with", file)
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		return id
	}
	id := submit("Never", "0", "sleep 0.3; echo helper ends")
	s.well(id)
	log := s.run("glog", id).out
	for name, want := range map[string][]string{
		"": {"of the other image", "main ends"}, "side": {"of the other image", "14", "side ends"}, "helper": {"1001", "helper ends"},
	} {
		if got := labelled(log, name); !slices.Equal(got, want) {
			t.Errorf("%q says %q, want %q; all:\n%s", name, got, want, log)
		}
	}
	s.nowhere(value, id)

	id = submit("Never", "0", "exit 4") // the job's own runs to its end
	if d := s.wait(id); d.State != job.Failed || d.ExitCode == nil || *d.ExitCode != 4 || !strings.Contains(s.must("gqueue", "show", id), "helper, which runs beside the job: exit code 4") {
		t.Errorf("a job whose container beside its own fails:\n%s", describe(d))
	}
	if log := s.run("glog", id).out; !strings.Contains(log, "main ends") {
		t.Errorf("it did not go on:\n%s", log)
	}

	id = submit("OnFailure", "6", "while :; do sleep 0.1; done") // the first that fails ends the others
	if d := s.wait(id); d.State != job.Failed || d.ExitCode == nil || *d.ExitCode != 6 {
		t.Errorf("a job whose own container fails:\n%s", describe(d))
	}
	if log := s.run("glog", id).out; !strings.Contains(log, "[helper] helper asked") {
		t.Errorf("the other was not ended:\n%s", log)
	}
}

const besideDoc = `{"name": "beside", "request": {"resources": {"gpus": 0, "cpus": 1, "cpuMemoryGb": 1}, "docker": {"image": "IMAGE",
	"command": ["sh", "-c", "trap 'echo own asked; exit 0' TERM; touch /project/own; while :; do sleep 0.1; done"], "storage": ["/project"]}},
	"gbatch": {"stopGrace": "1 minute",
		"before": [{"name": "side", "sidecar": true, "image": "OTHER", "command": ["sh", "-c", "trap 'echo side asked; exit 0' TERM; touch /project/side; while :; do sleep 0.1; done"], "storage": ["/project"]}],
		"beside": [{"name": "b", "image": "OTHER", "command": ["sh", "-c", "trap 'echo b asked; exit 0' TERM; touch /project/b; while :; do sleep 0.1; done"], "storage": ["/project"]}]}}`

// waitFiles waits until programs have made these files in the project's storage.
func (s *site) waitFiles(names ...string) {
	s.t.Helper()
	for _, name := range names {
		eventually(s.t, "there is a file "+name, func() bool { _, err := os.Stat(filepath.Join(s.project(), name)); return err == nil })
	}
}

// TestBesideAndDaemons: all containers of a job outlive the node's daemon, are entered by
// their names, and end by one cancel; a killed shim takes all with it; nothing is left.
func TestBesideAndDaemons(t *testing.T) {
	s := newSite(t, siteOptions{})
	s.inProject("there", "") // for everybody to write beside it
	doc := strings.NewReplacer("IMAGE", image, "OTHER", tools(t)).Replace(besideDoc)
	id := s.file(doc)
	s.waitRunning(id)
	s.waitFiles("own", "side", "b")
	s.nodes[0].kill()
	s.nodes[0].cmd = nil
	s.nodes[0].start()
	s.waitNodes("up", 1)
	for name, want := range map[string]string{"b": "of the other image\n", "side": "of the other image\n", "": "not there\n"} {
		args := []string{id, "--", "sh", "-c", "cat /app/run 2> /dev/null || echo not there"}
		if name != "" {
			args = append([]string{"--container", name}, args...)
		}
		if r := s.run("gexec", args...); r.code != 0 || r.out != want {
			t.Errorf("gexec in %q: %+v", name, r)
		}
	}
	if r := s.run("gexec", "--container", "none", id, "--", "true"); r.code == 0 || !strings.Contains(r.err, `no container "none" runs in the job; these do: side, b`) {
		t.Errorf("gexec in a container that is not there: %+v", r)
	}
	s.must("gcancel", id)
	if d := s.wait(id); d.State != job.Cancelled {
		t.Errorf("after a cancel:\n%s", describe(d))
	}
	log := s.run("glog", id).out
	for _, text := range []string{"own asked\n", "[side] side asked\n", "[b] b asked\n"} {
		if !strings.Contains(log, text) {
			t.Errorf("no %q in\n%s", text, log)
		}
	}
}

// TestGPUsOfContainers: each container of a pod sees its own GPUs and no other's, also where
// the node's daemon and the controller are killed while they run and a sidecar begins again;
// one that ran alone before them may have had the same ones.
func TestGPUsOfContainers(t *testing.T) {
	s := newSite(t, siteOptions{nodeGPUs: []string{"a100:6"}})
	s.inProject("there", "")
	const sees = `s() { echo $NVIDIA_VISIBLE_DEVICES $CUDA_VISIBLE_DEVICES $GPULAB_GPUS_RESERVED $SLURM_JOB_GPUS $GBATCH_NUM_GPUS $GBATCH_GPU_UUIDS > /p/$1-$(ls /p | grep -c "^$1-"); }; `
	container := func(name, gpus, more, script string) string {
		limits := ""
		if gpus != "" {
			limits = ", nvidia.com/gpu: " + gpus
		}
		return fmt.Sprintf("      - {name: %s, image: %s, command: [sh, -c, %q]%s, volumeMounts: [{name: p, mountPath: /p}], resources: {limits: {memory: 64Mi%s}}}\n", name, image, sees+script, more, limits)
	}
	const wait = "; until [ -e /p/go ]; do sleep 0.1; done"
	id := s.file("apiVersion: batch/v1\nkind: Job\nmetadata: {name: pod}\nspec:\n  backoffLimit: 0\n  template:\n    spec:\n      restartPolicy: Never\n" +
		"      volumes: [{name: p, hostPath: {path: /project}}]\n      initContainers:\n" +
		container("first", "5", "", "s first") + container("side", "1", ", restartPolicy: Always", `trap exit TERM; s side; until [ -e /p/again ]; do sleep 0.1; done; if [ -e /p/side-1 ]; then while :; do sleep 0.1; done; fi`) + container("second", "2", "", "s second") +
		"      containers:\n" + container("none", "", "", "s none"+wait) + container("main", "2", "", "s main"+wait) + container("mate", "1", "", "s mate"+wait))
	s.waitFiles("first-0", "second-0", "side-0", "none-0", "main-0", "mate-0")
	s.nodes[0].kill()
	s.nodes[0].cmd = nil
	s.ctld.kill()
	s.ctld.cmd = nil
	s.inProject("again", "")
	s.waitFiles("side-1")
	s.ctld.start()
	s.nodes[0].start()
	s.waitNodes("up", 1)
	seen := map[string][]string{}
	for _, name := range []string{"first-0", "side-0", "side-1", "second-0", "none-0", "main-0", "mate-0"} {
		seen[name] = lines(t, filepath.Join(s.project(), name)) // by words
	}
	var all []string
	for name, count := range map[string]int{"first-0": 5, "side-0": 1, "second-0": 2, "none-0": 0, "main-0": 2, "mate-0": 1} {
		words := seen[name]
		if count == 0 {
			if !slices.Equal(words, []string{"0"}) {
				t.Errorf("%s sees %q", name, words)
			}
			continue
		}
		cuda := "0"
		for i := 1; i < count; i++ {
			cuda += fmt.Sprint(",", i)
		}
		if len(words) != 6 || words[1] != cuda || words[0] != words[5] || words[2] != words[3] || words[4] != fmt.Sprint(count) || len(strings.Split(words[0], ",")) != count {
			t.Fatalf("%s sees %q, want %d GPUs", name, words, count)
		}
		if name != "first-0" && name != "second-0" {
			all = append(all, strings.Split(words[0], ",")...)
		}
	}
	slices.Sort(all)
	if len(slices.Compact(all)) != 4 || !slices.Equal(seen["side-0"], seen["side-1"]) || strings.Contains(seen["second-0"][0], seen["side-0"][0]) {
		t.Errorf("they see %v", seen)
	}
	s.waitRunning(id) // what its containers write can be ahead of the node's word, as both were killed
	for name, want := range map[string][]string{"": seen["main-0"], "mate": seen["mate-0"], "side": seen["side-0"]} {
		args := []string{id, "--", "sh", "-c", "echo $NVIDIA_VISIBLE_DEVICES"}
		if name != "" {
			args = append([]string{"--container", name}, args...)
		}
		if r := s.run("gexec", args...); strings.TrimSpace(r.out) != want[0] {
			t.Errorf("gexec in %q sees %+v, want %s", name, r, want[0])
		}
	}
	if d := s.job(id); d.GPUs != 5 {
		t.Errorf("the job has %v GPUs", d.GPUs)
	}
	s.inProject("go", "")
	s.well(id)
}

// TestBesideIsTheUsers: what is wrong with a container beside the job's own is the user's
// fault, and says whose it is.
func TestBesideIsTheUsers(t *testing.T) {
	s := newSite(t, siteOptions{})
	const form = `{"name": "x", "request": {"resources": {"gpus": 0, "cpus": 1, "cpuMemoryGb": 1}, "docker": {"image": "IMAGE", "command": ["sleep", "1000"]}}, "gbatch": {"beside": [%s]}}`
	for name, tc := range map[string]struct{ beside, reason, text string }{
		"image":   {`{"name": "b", "image": "` + strings.Split(image, "/")[0] + `/none/there:1"}`, "IMAGE_PULL", "b: "},
		"command": {`{"name": "b", "image": "IMAGE", "command": ["/nothing"]}`, "BAD_SPEC", "b: "},
		"memory":  {`{"name": "b", "image": "IMAGE", "memoryMb": 16, "command": ["sh", "-c", "dd if=/dev/zero of=/dev/null bs=40M count=1; sleep 1000"]}`, "OOM", "b, which runs beside the job: out of memory"},
	} {
		t.Run(name, func(t *testing.T) {
			doc := strings.ReplaceAll(fmt.Sprintf(form, tc.beside), "IMAGE", image)
			if name == "memory" { // the job's own goes on, where they do not fail together
				doc = strings.Replace(doc, `"gbatch": {`, `"gbatch": {"failTogether": true, `, 1)
			}
			id := s.file(doc)
			d := s.wait(id)
			if d.State != job.Failed || d.Reason != tc.reason || !strings.Contains(s.must("gqueue", "show", id), tc.text) {
				t.Errorf("it ended so:\n%s", describe(d))
			}
		})
	}
}
