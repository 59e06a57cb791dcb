package job

import (
	"fmt"

	"gbatch/internal/document"
)

// Group is ranks of a gang that ask for other amounts than those of request.resources, and
// may run something else in the same image. All other fields hold for all ranks.
type Group struct {
	Nodes                int      `json:"nodes"`
	GPUs                 float64  `json:"gpus"`
	CPUs                 int      `json:"cpus"`
	CPUMemoryGB          int      `json:"cpuMemoryGb"`
	GPUModel             []string `json:"gpuModel,omitempty"`
	GPUMemoryGB          int      `json:"gpuMemoryGb,omitempty"`
	MinComputeCapability float64  `json:"minComputeCapability,omitempty"`
	ShareOfNode          bool     `json:"shareOfNode,omitempty"` // see Gbatch.ShareOfNode

	Command    *Command `json:"command,omitempty"`    // in place of the job's command and entrypoint; nil: they have those
	Entrypoint []string `json:"entrypoint,omitempty"` // with Command, in place of the image's
}

const maxGroups = 15 // beside the ranks of request.resources

var groupFields = []field[Group]{
	{"nodes", func(d *decoder, n *node, g *Group) { d.integer(n, &g.Nodes, 1, maxNodes) }, true},
	{"gpus", func(d *decoder, n *node, g *Group) {
		var r Resources
		if readGPUs(d, n, &r); r.GPUs < 0 {
			d.Problem(n, "is -1, all GPUs of a node, which jobs have whose nodes are alike", "write how many")
		}
		g.GPUs = r.GPUs
	}, true},
	{"cpus", func(d *decoder, n *node, g *Group) { d.integer(n, &g.CPUs, 1, maxCPUs) }, true},
	{"cpuMemoryGb", func(d *decoder, n *node, g *Group) { d.integer(n, &g.CPUMemoryGB, 1, maxMemoryGB) }, true},
	{"gpuModel", func(d *decoder, n *node, g *Group) { d.strs(n, &g.GPUModel, plain(2, 128)) }, false},
	{"gpuMemoryGb", func(d *decoder, n *node, g *Group) { d.integer(n, &g.GPUMemoryGB, 1, maxGPUMemoryGB) }, false},
	{"minComputeCapability", func(d *decoder, n *node, g *Group) {
		var of Gbatch
		readComputeCapability(d, n, &of)
		g.MinComputeCapability = of.MinComputeCapability
	}, false},
	{"shareOfNode", func(d *decoder, n *node, g *Group) { d.boolean(n, &g.ShareOfNode) }, false},
	{"command", func(d *decoder, n *node, g *Group) {
		var c Docker
		readCommand(d, n, &c)
		g.Command = &c.Command
	}, false},
	{"entrypoint", func(d *decoder, n *node, g *Group) {
		var of Gbatch
		readEntrypoint(d, n, &of)
		g.Entrypoint = of.Entrypoint
	}, false},
}

func readGroups(d *decoder, n *node, to *Gbatch) {
	d.elements(n, maxGroups, func(_ int, n *node) {
		var g Group
		if document.Object(d, n, groupFields, &g) {
			if g.Command == nil && len(g.Entrypoint) > 0 {
				d.ProblemAt(n, "entrypoint", "is called with the group's \"command\", which is not given", `give it, as "" if there are no arguments`)
			}
			to.OtherGroups = append(to.OtherGroups, g)
		}
	})
}

// ranks is the number of containers of one attempt.
func (g *Gbatch) ranks() int {
	n := max(1, g.Nodes)
	for i := range g.OtherGroups {
		n += g.OtherGroups[i].Nodes
	}
	return n
}

// Ranks is the number of containers of one attempt, one on each node.
func (s *Spec) Ranks() int {
	g := s.gbatch()
	return g.ranks()
}

// groupOf is the group that a rank is of; nil for those of request.resources.
func (s *Spec) groupOf(rank int) *Group {
	g := s.gbatch()
	rank -= max(1, g.Nodes)
	for i := range g.OtherGroups {
		if rank >= 0 && rank < g.OtherGroups[i].Nodes {
			return &g.OtherGroups[i]
		}
		rank -= g.OtherGroups[i].Nodes
	}
	return nil
}

// OfGroup is the job as the ranks of one of Gbatch.OtherGroups have it.
func (s *Spec) OfGroup(g *Group) Spec {
	out := *s
	r := &out.Request.Resources
	r.GPUs, r.CPUs, r.CPUMemoryGB, r.GPUModel, r.GPUMemoryGB = g.GPUs, g.CPUs, g.CPUMemoryGB, g.GPUModel, g.GPUMemoryGB
	if g.Command != nil {
		own := s.gbatch()
		own.Entrypoint = g.Entrypoint
		out.Request.Docker.Command, out.Gbatch = *g.Command, &own
	}
	return out
}

// AsksGPUs says whether a rank asks for GPUs.
func (s *Spec) AsksGPUs() bool {
	asks := s.Request.Resources.GPUs != 0
	for _, g := range s.gbatch().OtherGroups {
		asks = asks || g.GPUs > 0
	}
	return asks
}

// checkGroups finds what ranks cannot have that are not alike.
func (d *decoder) checkGroups(gn *node, s *Spec) {
	g := s.Gbatch
	if len(g.OtherGroups) == 0 {
		return
	}
	if s.Request.Resources.GPUs < 0 {
		d.ProblemAt(gn, "otherGroups", "cannot be combined with request.resources.gpus -1, all GPUs of a node", "write how many")
	}
	if g.Launch != nil {
		d.ProblemAt(gn, "otherGroups", "cannot be combined with \"launch\", which shares tasks out to nodes that are alike", "remove one of them")
	}
	if n := g.ranks(); n > maxNodes {
		d.ProblemAt(gn, "otherGroups", fmt.Sprintf("makes %d nodes in all, at most %d are allowed", n, maxNodes), "")
	}
	for i := range g.OtherGroups {
		of := s.OfGroup(&g.OtherGroups[i])
		if wrong := of.ShmProblem(); wrong != "" {
			d.ProblemAt(gn, "shmSizeMb", fmt.Sprintf("%s in otherGroups[%d]", wrong, i), "raise its cpuMemoryGb")
		}
	}
}
