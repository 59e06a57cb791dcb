package job

import (
	"strings"
	"testing"
)

// TestEnvironment compares whole environments with testdata/environment.txt.
func TestEnvironment(t *testing.T) {
	plain := EnvInput{
		Spec: &Spec{Name: "HelloWorld", Request: Request{
			Resources: Resources{GPUs: 1, CPUs: 2, CPUMemoryGB: 1},
			Docker: Docker{
				Environment:        map[string]string{"DEMO_B": "two", "DEMO_A": "1", "SLURM_JOB_NAME": "mine"},
				ProjectGIDVariable: "DEMO_PROJECT_GID",
			},
		}},
		ID: RankID{Job: 123, Attempt: 1}, UUID: "a280f7e8-b1e6-11e9-93a1-ffe9aeb472f8",
		User: "ada", Project: "vision", ProjectGID: 6978, ClusterID: 1,
		Node: "gpu2", DNSName: "gpu2.example.org", InstanceID: "af25579982dc3949040", PID: 21924, WorkerID: "0", Version: "1.0",
		Address: "10.77.0.5", HostAddress: "192.0.2.2",
		Cores: []int{4, 5}, GPUs: []int{3}, GPUUUIDs: []string{"GPU-3"}, MemoryBytes: 1 << 30,
	}
	gang := plain
	gang.Spec = &Spec{Name: "train", Request: Request{Resources: Resources{GPUs: -1}}}
	gang.ID = RankID{Job: 7, Task: 3, Attempt: 2, Rank: 1}
	gang.Array, gang.RestartCount = &ArrayTask{Parent: 5, Index: 3, First: 1, Last: 19, Count: 10}, 1
	gang.Spec.Gbatch = &Gbatch{Source: "kubernetes"}
	gang.Nodes, gang.Addresses, gang.MasterPort = []string{"gpu1", "gpu2"}, []string{"10.0.0.1", "10.0.0.2"}, 29500
	gang.Address = "10.0.0.2"
	gang.GPUs, gang.GPUUUIDs = []int{0, 1}, []string{"GPU-0", "GPU-1"}
	share := plain
	share.Spec = &Spec{Name: "share", Request: Request{Resources: Resources{GPUs: 0.25}, Docker: Docker{ProjectGIDVariable: "SLURM_JOB_ID"}}}
	own := gang
	own.Spec, own.Array = &Spec{Name: "own", Request: Request{Docker: Docker{Environment: map[string]string{"PART": "$(INDEX)", "TWICE": "job"}}}, Gbatch: &Gbatch{ExpandVariables: true,
		OfRanks: []Own{{}, {Environment: map[string]string{"INDEX": "1", "MASTER_ADDR": "head", "TWICE": "rank $(GBATCH_RANK)"}}}}}, nil
	none := plain
	none.Spec, none.GPUs, none.GPUUUIDs = &Spec{Name: "none"}, nil, nil

	var b strings.Builder
	for _, tc := range []struct {
		name string
		in   EnvInput
	}{{"one rank", plain}, {"second rank of a gang in an array", gang}, {"share of a GPU, gid variable of Slurm's name", share}, {"no GPU", none}, {"a rank with variables of its own", own}} {
		b.WriteString("== " + tc.name + "\n")
		seen := map[string]bool{}
		for _, v := range Environment(tc.in) {
			b.WriteString(v + "\n")
			name, _, _ := strings.Cut(v, "=")
			if seen[name] {
				t.Errorf("%s: %s is set twice", tc.name, name)
			}
			seen[name] = true
		}
	}
	golden(t, "testdata/environment.txt", b.String())
}
