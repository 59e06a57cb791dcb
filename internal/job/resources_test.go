package job

import (
	"math"
	"testing"
)

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
