package job

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestResources(t *testing.T) {
	type counts struct {
		All   bool
		Whole int
		Milli int64
	}
	for gpus, want := range map[float64]counts{
		-1: {All: true}, 0: {}, 1: {Whole: 1, Milli: 1000}, 8: {Whole: 8, Milli: 8000}, 0.25: {Milli: 250}, 0.29: {Milli: 290}, 0.01: {Milli: 10},
	} {
		r := Resources{GPUs: gpus}
		if diff := cmp.Diff(want, counts{r.AllGPUs(), r.WholeGPUs(), r.MilliGPUs()}); diff != "" {
			t.Errorf("%v GPUs (-want +got):\n%s", gpus, diff)
		}
	}
}

func TestSpecSizes(t *testing.T) {
	s := &Spec{Request: Request{Resources: Resources{CPUMemoryGB: 4}}}
	if s.MemoryBytes() != 4<<30 || s.Ranks() != 1 || s.ProjectName() != "" {
		t.Errorf("plain job: memory %d, ranks %d, project %q", s.MemoryBytes(), s.Ranks(), s.ProjectName())
	}
	s.Request.Docker.Storage = []Storage{{HostPath: "tmpfs", ContainerPath: "/a", SizeGB: 3}, {HostPath: "/project", ContainerPath: "/project"}}
	s.Gbatch = &Gbatch{Nodes: 4}
	s.Owner = &Owner{ProjectURN: "urn:publicid:IDN+x+project+vision"}
	if s.MemoryBytes() != 7<<30 || s.Ranks() != 4 || s.ProjectName() != "vision" {
		t.Errorf("large job: memory %d, ranks %d, project %q", s.MemoryBytes(), s.Ranks(), s.ProjectName())
	}
	s.Owner.ProjectURN = "vision"
	if s.ProjectName() != "vision" {
		t.Errorf("plain project name: %q", s.ProjectName())
	}
}

func TestNegativeZeroGPUs(t *testing.T) {
	doc := `{"name":"x","request":{"resources":{"gpus":-0,"cpus":1,"cpuMemoryGb":1},"docker":{"image":"debian"}}}`
	sub, err := Parse([]byte(doc))
	if g := sub.Spec.Request.Resources.GPUs; err != nil || g != 0 || math.Signbit(g) {
		t.Errorf("-0 is read as %v, %v", g, err)
	}
}
