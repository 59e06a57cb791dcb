package job

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestBeforeSpec: what runs before a job has its own program, variables, mounts and
// files, and all else of the job's; and a rank's own directories are in it too.
func TestBeforeSpec(t *testing.T) {
	sub, err := Parse([]byte(`{"name": "t", "request": {"resources": {"gpus": 0, "cpus": 1, "cpuMemoryGb": 1},
		"docker": {"image": "debian", "command": ["main"], "environment": {"A": "1"}, "groupAdd": ["7"], "storage": ["/project"]}},
		"gbatch": {"terminal": true, "files": [{"path": "/f", "text": "x"}], "before": [{"name": "b", "image": "alpine/git", "command": ["clone"],
			"environment": {"B": "2"}, "storage": [{"hostPath": "/project/r-{rank}", "containerPath": "/r"}, {"hostPath": "scratch", "volume": "v", "subPath": "a/b", "containerPath": "/v"}]}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	spec := sub.Spec.OfRank(3)
	got := spec.ProgramSpec(&spec.Programs()[0])
	want := Docker{Image: "docker.io/alpine/git:latest", Command: Command{Argv: []string{"clone"}}, Environment: map[string]string{"B": "2"}, GroupAdd: []string{"7"},
		Storage: []Storage{{HostPath: "/project/r-3", ContainerPath: "/r"}, {HostPath: "scratch", ContainerPath: "/v", Volume: "v", SubPath: "a/b"}}}
	if diff := cmp.Diff(want, got.Request.Docker); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got.HasTerminal() || len(got.Files()) > 0 || got.Request.Resources.CPUs != 1 || len(got.Programs()) > 0 {
		t.Errorf("it has of the job's: %+v", got.Gbatch)
	}
	if at := sub.Spec.Programs()[0].Storage[0].HostPath; at != "/project/r-{rank}" {
		t.Errorf("the job itself was changed: %s", at)
	}
}

// TestBeforeIsRefused where it cannot be what it says.
func TestBeforeIsRefused(t *testing.T) {
	for name, before := range map[string]string{
		"login":     `"before": [{"name": "b", "image": "me:secret@example.org/x"}]`,
		"dots":      `"before": [{"name": "b", "image": "x", "storage": [{"hostPath": "scratch", "volume": "..", "containerPath": "/v"}]}]`,
		"up":        `"before": [{"name": "b", "image": "x", "storage": [{"hostPath": "scratch", "volume": "v", "subPath": "a/../..", "containerPath": "/v"}]}]`,
		"no volume": `"before": [{"name": "b", "image": "x", "storage": [{"hostPath": "scratch", "containerPath": "/v"}]}]`,
		"secret":    `"before": [{"name": "b", "image": "x", "files": [{"path": "/x", "secret": "NONE"}]}]`,
		"runtime":   `"runtime": "runsc", "before": [{"name": "b", "image": "x"}]`,
		"proc":      `"before": [{"name": "b", "image": "x", "storage": [{"hostPath": "scratch", "volume": "v", "containerPath": "/proc"}]}]`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(`{"name": "t", "request": {"resources": {"gpus": 0, "cpus": 1, "cpuMemoryGb": 1}, "docker": {"image": "debian"}}, "gbatch": {` + before + `}}`))
			if err == nil {
				t.Error("it is taken")
			}
		})
	}
}

// TestSecretsAreMarked: a secret's value is in no command that is written down.
func TestSecretsAreMarked(t *testing.T) {
	s := &Spec{Gbatch: &Gbatch{ExpandVariables: true, Secrets: []Secret{{Name: "KEY"}, {Name: "a.file"}}}}
	got := ExpandWords(s, []string{"x-$(KEY)-$(A)-$(a.file)-$$(KEY)"}, []string{"A=1", "KEY=2"})
	if diff := cmp.Diff([]string{"x-" + SecretMark("KEY") + "-1-$(a.file)-$(KEY)"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
