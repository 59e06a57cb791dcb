package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/job"
	"gbatch/oci/image/imagetest"
)

// with is a job document with one value changed; a nil value removes the key.
func with(path string, value any) string {
	var d map[string]any
	if err := json.Unmarshal([]byte(doc{command: []string{"true"}}.json()), &d); err != nil {
		panic(err)
	}
	keys := strings.Split(path, ".")
	at := d
	for _, k := range keys[:len(keys)-1] {
		next, ok := at[k].(map[string]any)
		if !ok {
			next = map[string]any{}
			at[k] = next
		}
		at = next
	}
	last := keys[len(keys)-1]
	at[last] = value
	if value == nil {
		delete(at, last)
	}
	b, err := json.Marshal(d)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// many is an array of n short strings.
func many(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = "ab"
	}
	return out
}

// TestRefused submits what must not be accepted: each is refused with its exit
// code and a message that says what and where, and leaves no job.
func TestRefused(t *testing.T) {
	s := newSite(t, siteOptions{})
	const resources, docker = "request.resources.", "request.docker."
	for name, tc := range map[string]struct {
		file string
		code int
		want []string // in stderr
	}{
		"empty":              {"", 2, []string{".json"}},
		"not_json":           {"hello", 2, []string{".json"}},
		"truncated":          {`{"name": "x", "request": {`, 2, []string{".json"}},
		"trailing":           {with("name", "x") + "}", 2, []string{".json"}},
		"no_object":          {`[1, 2]`, 2, []string{"object"}},
		"wrong_type":         {with(resources+"cpus", "two"), 2, []string{"request.resources.cpus"}},
		"wrong_type_object":  {with("request", []int{1}), 2, []string{"request"}},
		"unknown_key":        {with(resources+"gpu", 1), 2, []string{"request.resources.gpu", `did you mean "gpus"`}},
		"missing_resource":   {with(resources+"cpus", nil), 2, []string{"request.resources.cpus"}},
		"negative_cpus":      {with(resources+"cpus", -1), 2, []string{"request.resources.cpus", "-1"}},
		"negative_memory":    {with(resources+"cpuMemoryGb", -4), 2, []string{"request.resources.cpuMemoryGb"}},
		"negative_gpus":      {with(resources+"gpus", -2), 2, []string{"request.resources.gpus"}},
		"too_many_cpus":      {with(resources+"cpus", 5000), 6, []string{"5000", "8", s.nodeName(0)}},
		"too_much_memory":    {with(resources+"cpuMemoryGb", 900000), 6, []string{s.nodeName(0)}},
		"more_gpus_than_any": {with(resources+"gpus", 8), 6, []string{"GPU"}},
		"unknown_gpu_model":  {with(resources+"gpuModel", "Voodoo3"), 6, []string{"no node has a GPU"}},
		"unknown_cluster":    {with(resources+"clusterId", 77), 6, []string{"77"}},
		"unknown_node":       {with(resources+"slaveName", "nowhere"), 6, []string{"nowhere"}},
		"unknown_project":    {with("owner.projectUrn", "atlantis"), 3, []string{"atlantis", "default"}},
		"bad_image":          {with(docker+"image", "UPPER CASE//x"), 2, []string{"request.docker.image"}},
		"no_image":           {with(docker+"image", ""), 2, []string{"request.docker.image"}},
		"storage_dots":       {with(docker+"storage", []any{map[string]any{"hostPath": "/project/../etc", "containerPath": "/x"}}), 2, []string{"request.docker.storage[0]", ".."}},
		"storage_relative":   {with(docker+"storage", []any{"project"}), 2, []string{"request.docker.storage[0]"}},
		"storage_over_proc":  {with(docker+"storage", []any{map[string]any{"hostPath": "/project", "containerPath": "/proc"}}), 2, []string{"/proc"}},
		"huge_file":          {with("description", strings.Repeat("x", 10<<20)), 2, []string{"1048576"}},
		"huge_command":       {with(docker+"command", many(100_000)), 2, []string{"request.docker.command"}},
		"huge_storage":       {with(docker+"storage", many(100_000)), 2, []string{"request.docker.storage"}},
		"huge_features":      {with(resources+"features", many(100_000)), 2, []string{"request.resources.features"}},
		"deep":               {with("request", json.RawMessage(strings.Repeat("[", 5000)+strings.Repeat("]", 5000))), 2, []string{".json"}},
		"reserved_variable":  {with(docker+"environment", map[string]string{"GPULAB_JOB_ID": "1"}), 2, []string{"GPULAB_JOB_ID"}},
		"too_long":           {with("request.scheduling.maxDuration", "3000 days"), 6, []string{"maxDuration"}},
		"port_of_the_node":   {with(docker+"portMappings", []any{map[string]any{"containerPort": 80, "hostPort": 22}}), 2, []string{"portMappings[0].hostPort", "at least 1024"}},
		"host_network":       {with("gbatch", map[string]any{"network": "host"}), 4, []string{"gbatch.network", "hostNetwork"}},
		"interactive_later":  {with("request.scheduling", map[string]any{"interactive": true, "notBefore": "2099-01-01T00:00:00Z"}), 2, []string{"interactive"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := s.run("gsubmit", s.write(tc.file))
			if r.code != tc.code || r.out != "" {
				t.Errorf("gsubmit: %.2000s; want exit code %d and no output", r.String(), tc.code)
			}
			for _, want := range tc.want {
				if !strings.Contains(r.err, want) {
					t.Errorf("stderr has no %q: %.2000s", want, r.err)
				}
			}
		})
	}
	if out := s.must("gqueue", "-a", "-h"); strings.TrimSpace(out) != "" {
		t.Errorf("there are jobs after nothing was accepted:\n%s", out)
	}
	if r := s.run("gsubmit", "/no/such/file.json"); r.code != 2 || !strings.Contains(r.err, "/no/such/file.json") {
		t.Errorf("a file that is not there: %v", r)
	}
}

// TestBadImages runs jobs on images that cannot be had. Each fails with a
// sentence, and the node goes on to the next job.
func TestBadImages(t *testing.T) {
	needs(t)
	corrupt, err := open.push("demo/corrupt:1", imagetest.Options{Busybox: true, Layers: [][]imagetest.File{{{Name: "big", Body: []byte(strings.Repeat("corrupt me ", 1000))}}}})
	if err != nil {
		t.Fatal(err)
	}
	spoilNewestBlob(t, open.dir)
	t.Parallel() // it waits for most of a minute until a pull is given up; from here on nothing else counts on what the registry has
	s := newSite(t, siteOptions{nodeConfig: "images: {pullTimeout: 20s, hosts: [127.0.0.1]}\n"})
	for name, tc := range map[string]struct{ image, text string }{
		"missing_tag":   {open.host + "/demo/box:none", "no such tag"},
		"missing_name":  {open.host + "/demo/nothing:1", "no such repository"},
		"needs_login":   {private.host + "/secret/box:1", "wants a login"},
		"login_refused": {"puller:wrong@" + private.host + "/secret/box:1", "login refused"},
		"registry_down": {"127.0.0.1:1/demo/box:1", "connection refused"},
		"corrupt_layer": {corrupt, "layer 2 is corrupt"},
	} {
		t.Run(name, func(t *testing.T) {
			id := s.submit(doc{name: name, image: tc.image, command: []string{"true"}})
			d := s.wait(id)
			if d.State != job.Failed || job.Reason(d.Reason) != job.ImagePull || !strings.Contains(d.ReasonText, tc.text) {
				t.Errorf("want FAILED, IMAGE_PULL and %q:\n%s", tc.text, describe(d))
			}
			if strings.Contains(d.ReasonText, "wrong") {
				t.Errorf("the reason shows the password: %s", d.ReasonText)
			}
			if diff := cmp.Diff(finished, endOf(s.wait(s.submit(doc{name: "next", command: []string{"true"}})))); diff != "" {
				t.Errorf("the next job's end (-want +got):\n%s", diff)
			}
		})
	}
	s.waitNodes("up", 1)
}

// spoilNewestBlob changes a byte of the largest blob that came last.
func spoilNewestBlob(t *testing.T, registry string) {
	t.Helper()
	files, err := filepath.Glob(registry + "/data/docker/registry/v2/blobs/sha256/*/*/data")
	if err != nil {
		t.Fatal(err)
	}
	newest := ""
	var at os.FileInfo
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		layer := len(b) > 2 && b[0] == 0x1f && b[1] == 0x8b
		if layer && (at == nil || info.ModTime().After(at.ModTime())) {
			newest, at = f, info
		}
	}
	b, err := os.ReadFile(newest)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 0xff
	if err := os.WriteFile(newest, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestDeadController asks when nobody answers.
func TestDeadController(t *testing.T) {
	s := newSite(t, siteOptions{})
	s.ctld.kill()
	for _, cmd := range [][]string{{"gqueue"}, {"ginfo"}, {"gcancel", "1"}, {"glog", "1"}, {"gsubmit", s.write(doc{}.json())}} {
		r := s.run(cmd[0], append(cmd[1:], "--timeout", "1s")...)
		if r.code != 5 || !strings.Contains(r.err, s.socket()) {
			t.Errorf("%s: %v; want exit code 5 and the address", cmd[0], r)
		}
	}
}
