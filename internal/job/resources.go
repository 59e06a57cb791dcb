package job

import "strings"

const (
	gib = 1 << 30
	mib = 1 << 20
)

// AllGPUs says that the job asks for every GPU of a node, whatever their number.
func (r Resources) AllGPUs() bool { return r.GPUs == -1 }

// WholeGPUs is the number of whole GPUs of one rank; 0 for a share and for all.
func (r Resources) WholeGPUs() int {
	if r.GPUs < 1 {
		return 0
	}
	return int(r.GPUs)
}

// MilliGPUs is the request of one rank in thousandths of a GPU: 2000 for two,
// 250 for a quarter; 0 for none and for all.
func (r Resources) MilliGPUs() int64 {
	if r.GPUs < 0 {
		return 0
	}
	return int64(r.GPUs*1000 + 0.5)
}

// MemoryBytes is what one rank may use and what a node reserves for it: the
// memory asked for and all tmpfs, whose pages are charged to the container.
func (s *Spec) MemoryBytes() int64 {
	total := int64(s.Request.Resources.CPUMemoryGB)
	for _, m := range s.Request.Docker.Storage {
		total += int64(m.SizeGB)
	}
	return total * gib
}

// Ranks is the number of containers of one attempt, one on each node.
func (s *Spec) Ranks() int {
	if s.Gbatch == nil {
		return 1
	}
	return max(1, s.Gbatch.Nodes)
}

// ProjectName is the project that the document names, empty if it names none.
func (s *Spec) ProjectName() string {
	if s.Owner == nil {
		return ""
	}
	return s.Owner.ProjectURN[strings.LastIndexByte(s.Owner.ProjectURN, '+')+1:]
}
