package jobs

import (
	"fmt"
	"slices"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched/models"
)

// takeShare gives a job that asks for the share of its GPUs the cores and the memory
// that come with them: as much as each node has for it that could hold the GPUs, so
// that it may start on any of them.
func takeShare(v *state.View, spec *job.Spec) (notes []job.Note) {
	g := spec.Gbatch
	if g == nil {
		return nil
	}
	take := func(share *bool, path string, r *job.Resources) {
		asked := *share
		if *share = false; asked && shareOf(v, r) { // the document says what came of it
			notes = append(notes, job.Note{Path: path, Message: fmt.Sprintf("has the share of its GPUs: %d cores and %d GB of memory of each node", r.CPUs, r.CPUMemoryGB)})
		}
	}
	take(&g.ShareOfNode, "request.resources", &spec.Request.Resources)
	for i := range g.OtherGroups {
		to := &g.OtherGroups[i]
		r := spec.OfGroup(to).Request.Resources
		take(&to.ShareOfNode, fmt.Sprintf("gbatch.otherGroups[%d]", i), &r)
		to.CPUs, to.CPUMemoryGB = r.CPUs, r.CPUMemoryGB
	}
	return notes
}

// shareOf raises cores and memory to the share, and says whether it did.
func shareOf(v *state.View, r *job.Resources) bool {
	cpus, memory := 0, 0
	for n := range v.Nodes.All() {
		inv := n.Inventory
		if r.GPUs <= 0 || fitting(inv.GPUs, r) < r.GPUs {
			continue
		}
		part := r.GPUs / float64(len(inv.GPUs))
		c, m := int(float64(inv.CPUs)*part), int(float64(inv.MemBytes>>30)*part)
		if cpus == 0 || c < cpus {
			cpus = c
		}
		if memory == 0 || m < memory {
			memory = m
		}
	}
	if cpus <= r.CPUs && memory <= r.CPUMemoryGB {
		return false
	}
	r.CPUs, r.CPUMemoryGB = max(r.CPUs, cpus), max(r.CPUMemoryGB, memory)
	return true
}

// fitting counts the GPUs that a job could have.
func fitting(all []node.GPU, r *job.Resources) (n float64) {
	for _, g := range all {
		model := slices.ContainsFunc(r.GPUModel, func(m string) bool { return models.Has(m, g.Model) })
		if (model || len(r.GPUModel) == 0) && int(g.MemBytes>>30) >= r.GPUMemoryGB {
			n++
		}
	}
	return n
}
