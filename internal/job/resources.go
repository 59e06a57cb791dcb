package job

import "strings"

const (
	gib = 1 << 30
	mib = 1 << 20
)

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
func (s *Spec) Ranks() int { return max(1, s.gbatch().Nodes) }

// ProjectName is the project that the document names, empty if it names none.
func (s *Spec) ProjectName() string {
	if s.Owner == nil {
		return ""
	}
	return s.Owner.ProjectURN[strings.LastIndexByte(s.Owner.ProjectURN, '+')+1:]
}
