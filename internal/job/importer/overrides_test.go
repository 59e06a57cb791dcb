package importer

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/job"
)

func TestQuick(t *testing.T) {
	o := Overrides{Image: "me:hush@registry.example.org/a:1", Command: []string{"/bin/train", "--lr=1"}, GPUs: "h100:2", CPUs: 3, Time: "1-0", Array: "0-9%2",
		Env: []string{"A=b=c", "HF_HOME"}, Mount: []string{"/project", "/data:/d:ro"}, NodeList: "n[1-2]", Exclude: "m1", QOS: "high", Retry: 2, Exclusive: true, Requeue: true}
	sub, err := o.Quick()
	if err != nil {
		t.Fatal(err)
	}
	if sub, err = o.Apply(sub, surroundings); err != nil {
		t.Fatal(err)
	}
	got, _ := json.Marshal(sub.Spec)
	want := `{"name":"train","request":{"resources":{"gpus":2,"cpus":3,"cpuMemoryGb":1,"gpuModel":["h100"]},"docker":{"image":"registry.example.org/a:1",` +
		`"command":["/bin/train","--lr=1"],"environment":{"A":"b=c","HF_HOME":"of HF_HOME"},"storage":[{"hostPath":"/project","containerPath":"/project"},` +
		`{"hostPath":"/data","containerPath":"/d","readOnly":true}]},"scheduling":{"maxDuration":"1 day","restartable":true}},` +
		`"gbatch":{"exclusive":true,"nodeNames":["n1","n2"],"excludeNodes":["m1"],"qos":"high","tasks":{"indexes":"0-9","parallelism":2},"retry":{"limit":2},"haltSignal":"TERM"}}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if sub.Registry == nil || sub.Registry.Password != "hush" {
		t.Errorf("login is %v", sub.Registry)
	}
}

// TestQuickWhole: a whole node, or all of its memory, is asked for as such.
func TestQuickWhole(t *testing.T) {
	for name, tc := range map[string]struct {
		o    Overrides
		want string
	}{
		"exclusive":  {Overrides{Exclusive: true, CPUs: 8}, `{"cpus":8,"gb":1,"g":{"exclusive":true}}`},
		"all memory": {Overrides{Mem: "0", CPUs: 8}, `{"cpus":8,"gb":1,"g":{"allMemory":true}}`},
		"some":       {Overrides{Mem: "3G"}, `{"cpus":1,"gb":3,"g":null}`},
	} {
		tc.o.Image, tc.o.Command = "a", []string{"true"}
		sub, err := tc.o.Quick()
		if err == nil {
			sub, err = tc.o.Apply(sub, surroundings)
		}
		if err != nil {
			t.Fatal(name, err)
		}
		r := sub.Spec.Request.Resources
		got, _ := json.Marshal(struct {
			CPUs int         `json:"cpus"`
			GB   int         `json:"gb"`
			G    *job.Gbatch `json:"g"`
		}{r.CPUs, r.CPUMemoryGB, sub.Spec.Gbatch})
		if diff := cmp.Diff(tc.want, string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestNotify: flags add to whom the file has told, and win over what it says of the
// same address.
func TestNotify(t *testing.T) {
	const file = `{"name":"t","request":{"resources":{"gpus":0,"cpus":1,"cpuMemoryGb":1},"docker":{"image":"a"}},"gbatch":{"notify":["ann@example.org",{"to":"https://a.example/x","on":["begin"]}]}}`
	for name, tc := range map[string]struct {
		flags []string
		want  string // the list, or a part of the refusal
	}{
		"none":           {nil, `[{"to":"ann@example.org"},{"to":"https://a.example/x","on":["begin"]}]`},
		"added":          {[]string{"bob@example.org", "slack,fail,requeue:https://b.example/y?a=1:2"}, `[{"to":"ann@example.org"},{"to":"https://a.example/x","on":["begin"]},{"to":"bob@example.org"},{"to":"https://b.example/y?a=1:2","format":"slack","on":["fail","requeue"]}]`},
		"changed":        {[]string{"text:https://a.example/x", "begin:ann@example.org"}, `[{"to":"https://a.example/x","format":"text"},{"to":"ann@example.org","on":["begin"]}]`},
		"twice":          {[]string{"bob@example.org", "fail:bob@example.org"}, "another entry has"},
		"no such event":  {[]string{"fial:bob@example.org"}, `--notify: is "fial": before the colon stand events (begin, end, fail, requeue, limit, limit-50, limit-80, limit-90)`},
		"two formats":    {[]string{"text,json:https://a.example/x"}, `--notify: is "json"`},
		"format of mail": {[]string{"slack:bob@example.org"}, "is for web addresses"},
		"no address":     {[]string{"bob"}, "neither NAME@HOST nor https://HOST/PATH"},
	} {
		sub, err := job.Parse([]byte(file))
		if err != nil {
			t.Fatal(err)
		}
		sub, err = Overrides{Notify: tc.flags}.Apply(sub, surroundings)
		if err != nil {
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v, want %s", name, err, tc.want)
			}
			continue
		}
		if got, _ := json.Marshal(sub.Spec.Gbatch.Notify); string(got) != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

func TestOverrides(t *testing.T) {
	base := func() job.Submission {
		sub, err := job.Parse([]byte(`{"name":"t","request":{"resources":{"gpus":1,"cpus":2,"cpuMemoryGb":4,"gpuModel":"A100"},"docker":{"image":"u:p@example.org/a","environment":{"A":"1"}}},"gbatch":{"secrets":[{"name":"S","value":"v"}]}}`))
		if err != nil {
			t.Fatal(err)
		}
		return sub
	}
	sub, err := Overrides{GPUs: "0.5", Mem: "10G", Time: "2 hours", Env: []string{"B=2"}}.Apply(base(), surroundings)
	if err != nil {
		t.Fatal(err)
	}
	r := sub.Spec.Request
	if r.Resources.GPUs != 0.5 || r.Resources.CPUMemoryGB != 10 || r.Resources.CPUs != 2 || r.Scheduling.MaxDuration != 7200 || len(r.Docker.Environment) != 2 ||
		sub.Registry == nil || sub.Secrets["S"] != "v" {
		t.Errorf("got %+v, login %v, secrets %v", r, sub.Registry, sub.Secrets)
	}
	_, err = Overrides{GPUs: "x:y", Mem: "lots", Time: "soon", Array: "9-1", Env: []string{"NOPE"}, Mount: []string{"a:b:c:d"}, NodeList: "n[", Image: "Bad Image"}.Apply(base(), surroundings)
	want := `8 problems:
  --mem: is "lots": want a number of MiB, or a number and K, M, G or T
  --gpus: is "x:y": want a number, or MODEL:NUMBER
  --nodelist: is "n[": has a bracket that is not closed, or text behind one
  --image: is no image reference; write name:tag, registry:port/name:tag, user:password@registry:port/name:tag, name@sha256:<64 hex digits>, oci:/path/layout:tag, oci-archive:/path.tar:tag or docker-archive:/path.tar
  --env: is "NOPE": is not set where the job is submitted
  --mount: is "a:b:c:d": want SOURCE:TARGET, or SOURCE:TARGET:ro
  --time: is "soon": want MINUTES, MINUTES:SECONDS, HOURS:MINUTES:SECONDS, DAYS-HOURS, DAYS-HOURS:MINUTES or DAYS-HOURS:MINUTES:SECONDS; or a number and a unit, such as "90m", "2 hours" or "1d"
  --array: is "9-1": "9-1" ends before it begins`
	if err == nil {
		t.Fatal("bad flags were taken")
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestBroughtIsKept: what a file of another system names of the submitter's machine is no
// part of a document, and is still there when the job was made and flags were applied.
func TestBroughtIsKept(t *testing.T) {
	file := "type: task\nname: train\nimage: a\ncommands: [\"true\"]\nresources: {cpu: 1, memory: 1GB}\nfiles: [\"data:/data\"]\nrepos:\n" +
		"- {url: \"https://git.example.org/a/code\", path: /code, branch: main}\n"
	sub, err := Parse([]byte(file), surroundings)
	if err != nil {
		t.Fatal(err)
	}
	want := []job.Brought{{From: "data", Path: "/data"}, {From: "https://git.example.org/a/code", Path: "/code", Clone: &job.Commit{Branch: "main"}}}
	if diff := cmp.Diff(want, sub.Brought); diff != "" {
		t.Errorf("of the file (-want +got):\n%s", diff)
	}
	if sub, err = (Overrides{Name: "other"}).Apply(sub, surroundings); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, sub.Brought); diff != "" || sub.Spec.Name != "other" {
		t.Errorf("%s, with a flag (-want +got):\n%s", sub.Spec.Name, diff)
	}
}
