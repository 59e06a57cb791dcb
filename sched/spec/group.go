package spec

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// Group is ranks of a shape that take other amounts than its own. What each means is
// told at Shape.
type Group struct {
	Nodes         int      `json:"nodes"`
	MilliGPU      int64    `json:"milliGpu,omitempty"`
	MilliCPU      int64    `json:"milliCpu,omitempty"`
	MemMiB        int64    `json:"memMib,omitempty"`
	GPUModels     []string `json:"gpuModels,omitempty"`
	GPUMemMiB     int64    `json:"gpuMemMib,omitempty"`
	MinComputeCap int      `json:"minComputeCap,omitempty"`
}

// maxGroups bounds the groups of a shape: each is looked at for each node.
const maxGroups = 16

// Alone is the shape of the ranks of one group: of those with the shape's own
// amounts for 0, of Groups[i-1] for i.
func (s *Shape) Alone(i int) Shape {
	out := *s
	out.Groups, out.Licenses, out.PerNode = nil, nil, 0
	if i == 0 {
		return out
	}
	g := s.Groups[i-1]
	out.Nodes, out.MilliGPU, out.MilliCPU, out.MemMiB = g.Nodes, g.MilliGPU, g.MilliCPU, g.MemMiB
	out.GPUModels, out.GPUMemMiB, out.MinComputeCap = g.GPUModels, g.GPUMemMiB, g.MinComputeCap
	return out
}

// Join adds ranks after those that there are, as a group of their own only if they take
// other amounts than the last of these.
func (s *Shape) Join(g Group) {
	last := s.Alone(len(s.Groups))
	was := Group{last.Alike(), last.MilliGPU, last.MilliCPU, last.MemMiB, last.GPUModels, last.GPUMemMiB, last.MinComputeCap}
	nodes := g.Nodes
	switch g.Nodes = was.Nodes; {
	case !reflect.DeepEqual(was, g):
		g.Nodes = nodes
		s.Groups = append(s.Groups, g)
	case len(s.Groups) == 0:
		s.Nodes = was.Nodes + nodes
	default:
		s.Groups[len(s.Groups)-1].Nodes += nodes
	}
}

// Total adds up an amount of all ranks but the rest.
func (s *Shape) Total(of func(*Shape) int64) (sum int64) {
	if len(s.Groups) == 0 {
		return int64(s.Alike()) * of(s)
	}
	for i := range len(s.Groups) + 1 {
		one := s.Alone(i)
		sum += int64(one.Alike()) * of(&one)
	}
	return sum
}

// Most is the largest amount that a rank takes.
func (s *Shape) Most(of func(*Shape) int64) (most int64) {
	for i := range len(s.Groups) + 1 {
		one := s.Alone(i)
		most = max(most, of(&one))
	}
	return most
}

// validateGroups reports what no groups may have.
func (s *Shape) validateGroups() error {
	var errs []error
	if len(s.Groups) > maxGroups {
		return fmt.Errorf("has %d groups: want at most %d", len(s.Groups), maxGroups)
	}
	if s.AllGPUs || s.RestMilliGPU > 0 {
		errs = append(errs, errors.New("groups cannot be combined with allGpus and restMilliGpu"))
	}
	for i := range s.Groups {
		if n := s.Groups[i].Nodes; n < 1 || n > maxRanks {
			errs = append(errs, fmt.Errorf("groups[%d]: nodes is %d: want 1..%d", i, n, maxRanks))
		}
		one := s.Alone(i + 1)
		one.PerNode = s.PerNode
		if err := one.validate(); err != nil {
			errs = append(errs, fmt.Errorf("groups[%d]: %w", i, err))
		}
	}
	return errors.Join(errs...)
}

// canonical is the group with its list sorted, and a text that is equal for equal ones.
func (g Group) canonical(fold func(string) string) (Group, string) {
	models := sortedSet(g.GPUModels, fold)
	text := fmt.Sprintf(" and %d %d %d %d %q %d %d", g.Nodes, g.MilliGPU, g.MilliCPU, g.MemMiB, models, g.GPUMemMiB, g.MinComputeCap)
	g.GPUModels = slices.Clone(g.GPUModels)
	return g, text
}
