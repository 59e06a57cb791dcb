package job

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gbatch/internal/document"
	"gbatch/internal/job/times"
)

func seeds(f *testing.F) {
	for _, pattern := range []string{"testdata/good/*.json", "testdata/bad/*.json"} {
		for _, path := range files(f, pattern) {
			f.Add(read(f, path))
		}
	}
}

// FuzzParse: nothing panics, what is accepted reads back to itself, and what is
// refused is a list of problems in bounds.
func FuzzParse(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		sub, err := Parse(data)
		if err == nil {
			roundTrip(t, sub)
			return
		}
		var ps Problems
		if !errors.As(err, &ps) || len(ps) == 0 || len(ps) > document.MaxProblems {
			t.Fatalf("error is %d problems: %v", len(ps), err)
		}
		line := 0
		for _, p := range ps {
			if p.Message == "" || strings.Contains(p.String(), "%!") || len(p.String()) > 4096 {
				t.Errorf("bad problem %q", p)
			}
			if p.Line != 0 && p.Line < line {
				t.Errorf("problem %q comes after line %d", p, line)
			}
			line = p.Line
		}
	})
}

// FuzzPassword: whatever stands around a password in an image, good or bad,
// the password is in no result but the credentials.
func FuzzPassword(f *testing.F) {
	const password = "Hunter2PassWord"
	f.Add("user:", "@registry:5000/x:y", "")
	f.Add("user:", "@", ",")
	f.Add("user:a@", ":5000/UPPER:x", `"x": [`)
	f.Add("oci:/", "@sha256:12", "")
	f.Fuzz(func(t *testing.T, before, after, rest string) {
		image, err := json.Marshal(before + password + after)
		if err != nil || !strings.Contains(before+after, "@") || !strings.Contains(before, ":") {
			t.Skip("no place for a password")
		}
		for _, doc := range []string{
			`{"name": "x", "request": {"resources": {"gpus": 0, "cpus": 1, "cpuMemoryGb": 1}, "docker": {"image": ` + string(image) + `}}` + rest + `}`,
			`{"name": "x", "request": {"docker": {"image": ` + string(image) + rest,
		} {
			sub, err := Parse([]byte(doc))
			if err != nil && strings.Contains(err.Error(), password) {
				t.Errorf("error shows the password: %v", err)
			}
			if err != nil || sub.Registry == nil {
				continue // a password is what stands before the last @ only
			}
			shown, err := json.Marshal(sub)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(sub.Registry.Password, password) && strings.Contains(string(shown), password) {
				t.Errorf("the job shows the password: %s", shown)
			}
		}
	})
}

// Any job that is within the rules is read back from its JSON unchanged.
func TestSpecReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSpec(t)
		data, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		sub, err := Parse(data)
		if err != nil {
			t.Fatalf("%v\n%s", err, data)
		}
		if diff := cmp.Diff(s, sub.Spec); diff != "" {
			t.Fatalf("job changed by its own JSON (-want +got):\n%s", diff)
		}
	})
}

func drawSpec(t *rapid.T) Spec {
	text := rapid.StringOfN(rapid.RuneFrom([]rune("aZ9 é🚀\"\\<&/{")), 2, 40, -1).Filter(func(s string) bool { return strings.TrimSpace(s) != "" })
	name := rapid.StringMatching(`[A-Z][A-Z0-9_]{0,8}`).Filter(func(s string) bool { return variableName(s) == "" })
	path := rapid.StringMatching(`/data(/[a-z.]{1,3}x){0,3}`)
	duration := rapid.Int64Range(60, int64(times.MaxDuration))
	s := Spec{
		Name:        text.Draw(t, "name"),
		Description: rapid.StringOf(rapid.RuneFrom([]rune("ab\n\t\"é"))).Draw(t, "description"),
		Request: Request{
			Resources: Resources{
				ClusterID:      rapid.IntRange(0, maxClusterID).Draw(t, "cluster"),
				GPUs:           rapid.SampledFrom([]float64{-1, 0, 1, 8, 0.01, 0.29, 0.57, 0.99}).Draw(t, "gpus"),
				CPUs:           rapid.IntRange(1, maxCPUs).Draw(t, "cpus"),
				CPUMemoryGB:    rapid.IntRange(64, maxMemoryGB).Draw(t, "memory"),
				GPUMemoryGB:    rapid.IntRange(0, maxGPUMemoryGB).Draw(t, "gpu memory"),
				MinCudaVersion: rapid.IntRange(0, maxCudaVersion).Draw(t, "cuda"),
			},
			Docker: Docker{
				Image:      rapid.SampledFrom([]string{"docker.io/library/debian:stable", "reg.example:5000/a/b:c", "oci:/images/x:1"}).Draw(t, "image"),
				WorkingDir: path.Draw(t, "dir"),
				User:       rapid.SampledFrom([]string{"", "root", "1000", "a:b"}).Draw(t, "user"),
			},
			Scheduling: Scheduling{
				MinDuration: Duration(duration.Draw(t, "min")),
				MaxDuration: Duration(duration.Draw(t, "max")),
				Restartable: rapid.Bool().Draw(t, "restartable"),
				NotBefore:   Instant(rapid.Int64Range(0, 1e12).Draw(t, "before")),
				NotAfter:    Instant(rapid.Int64Range(1e12+1, 2e12).Draw(t, "after")),
			},
		},
		Gbatch: &Gbatch{
			Nodes:                rapid.IntRange(1, maxNodes).Draw(t, "nodes"),
			Priority:             rapid.IntRange(-MaxPriority, MaxPriority).Draw(t, "priority"),
			MinComputeCapability: float64(rapid.IntRange(10, 990).Draw(t, "capability")) / 10,
			ShmSizeMB:            rapid.IntRange(0, 65536).Draw(t, "shm"),
			HaltGrace:            Duration(rapid.IntRange(0, 3600).Draw(t, "haltGrace")), HaltSignal: rapid.SampledFrom(warnSignals).Draw(t, "halt"),
			WarnBefore: 1, WarnSignal: rapid.SampledFrom(warnSignals).Draw(t, "warn"),
		},
	}
	if rapid.Bool().Draw(t, "array") {
		s.Request.Docker.Command.Argv = rapid.SliceOfN(text, 1, 4).Draw(t, "argv")
	} else {
		s.Request.Docker.Command.Line = rapid.SampledFrom([]string{"", "a b", "a 'b c' > /x", "a | b"}).Draw(t, "line")
	}
	if env := rapid.MapOfN(name, rapid.String().Filter(func(s string) bool { return !strings.Contains(s, "\x00") }), 0, 4).Draw(t, "env"); len(env) > 0 {
		s.Request.Docker.Environment = env
	}
	for _, p := range rapid.SliceOfNDistinct(path, 0, 4, rapid.ID).Draw(t, "storage") {
		m := rapid.SampledFrom([]Storage{{HostPath: "/project"}, {HostPath: TmpfsHostPath, SizeGB: 2}, {HostPath: SSHHostPath, ReadOnly: true}}).Draw(t, "mount")
		m.ContainerPath = p
		s.Request.Docker.Storage = append(s.Request.Docker.Storage, m)
	}
	return s
}
