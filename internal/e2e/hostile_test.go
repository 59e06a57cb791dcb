package e2e

import (
	"slices"
	"strings"
	"testing"

	"gbatch/internal/job"
	"gbatch/internal/job/importer/hostiletest"
)

// nastiest are the hostile files that a controller takes and a node has to cope
// with. "": it runs, and its program ends as it likes.
var nastiest = map[string]job.Reason{
	"gpulab-v2/mount-options":       "",
	"gpulab-v2/workdir-fd":          job.BadSpec,
	"gpulab-v2/groups-docker":       job.BadSpec,
	"gpulab-v2/env-preload":         "",
	"gpulab-v2/command-shell":       "",
	"gpulab-v2/command-nested":      "",
	"gpulab-v2/image-dotdot":        job.ImagePull,
	"gpulab-v2/image-metadata":      job.ImagePull,
	"gpulab-v2/input-metadata-file": job.InputFailed,
	"gpulab-v2/progress-proc":       "",
	"gpulab-v2/secret-system":       "",
	"gpulab-v2/labels-escape":       "",
	"kubernetes/escalation":         "",
	"kubernetes/run-as-root":        "",
	"dstack/commands-shell":         "",
	"slurm/chdir":                   job.BadSpec,
	"slurm/job-name-shell":          "",
}

// TestHostileFiles runs the worst of the hostile files on a real node: none is
// told as the node's fault, the node stays well, and a job that ran before them
// runs after them.
func TestHostileFiles(t *testing.T) {
	s := newSite(t, siteOptions{})
	witness := s.submit(doc{name: "witness", command: idle})
	s.waitRunning(witness)
	submitted := map[string]string{} // case by job
	var ids []string
	for _, c := range hostiletest.Cases(t) {
		if _, ok := nastiest[c.Name]; !ok {
			continue
		}
		args := []string{"--time", "1", s.write(string(c.Text))}
		if !strings.HasPrefix(c.Name, "gpulab-v2/image-") {
			args = append([]string{"--image", image}, args...)
		}
		id := strings.TrimSpace(s.must("gsubmit", args...))
		submitted[id] = c.Name
		ids = append(ids, id)
	}
	if len(submitted) != len(nastiest) {
		t.Fatalf("%d of %d files are in the corpus", len(submitted), len(nastiest))
	}
	for _, id := range ids {
		d, name := s.wait(id), submitted[id]
		own := []job.Reason{job.None, job.ExitCode, job.Signal, job.BadSpec}
		if want := nastiest[name]; job.Reason(d.Reason) != want && (want != "" || !slices.Contains(own, job.Reason(d.Reason))) || d.Class == job.Infra {
			t.Errorf("%s ended with %s (%s), %s; want %s", name, d.Reason, d.Class, d.ReasonText, want)
		}
		if strings.Contains(d.ReasonText, s.dir) {
			t.Errorf("%s shows a place of the node: %s", name, d.ReasonText)
		}
	}
	if n := s.node(0); n.State != "up" {
		t.Errorf("the node is %s: %s", n.State, n.Reason)
	}
	if d := s.job(witness); d.State != job.Running || len(d.Attempts) > 1 {
		t.Errorf("the witness is %s", d.State)
	}
	s.must("gcancel", witness)
	s.wait(witness)
}
