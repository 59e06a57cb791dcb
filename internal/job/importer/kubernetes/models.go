package kubernetes

import (
	"gbatch/internal/job/importer/kubernetes/products"
)

// gpuLabels is what labels of nodes say of the GPUs on them, beside what containers ask
// for: a job's are as both say.
type gpuLabels struct {
	at       *node
	models   []string // any of these
	memoryGB int
	present  []expression // which say no more than that there are some
}

// narrow takes one label's models: with several labels a GPU is as all of them say.
func (g *gpuLabels) narrow(d *decoder, n *node, models []string) {
	if g.models != nil {
		if models = products.Both(g.models, models); len(models) == 0 {
			d.Problem(n, "is another GPU model than "+products.Text(g.models)+", which the job asks for as well", "keep one of them")
			return
		}
	}
	g.at, g.models = n, models
	d.Note(n, "is understood as the GPU model "+products.Text(models))
}

// labelledGPUs keeps the job's GPUs to what labels say of them.
func (k *manifest) labelledGPUs(d *decoder) {
	r, g := &k.spec.Request.Resources, k.labelled
	r.GPUMemoryGB = max(r.GPUMemoryGB, g.memoryGB)
	for _, e := range g.present {
		switch {
		case r.GPUs != 0:
			d.Note(e.at, "is not used: the job asks for GPUs, which only such nodes have")
		case e.operator == "In":
			d.AnyFeature(e.at, k.spec.Gbatch, e.key, e.values...)
		default:
			d.Problem(e.at, "asks for a node with GPUs, and the job for none", "ask for nvidia.com/gpu in the container's limits if it uses them, else remove it")
		}
	}
	switch {
	case len(g.models) == 0:
	case len(r.GPUModel) == 0:
		r.GPUModel = g.models
	default:
		both := products.Both(g.models, r.GPUModel)
		if len(both) == 0 {
			d.Problem(g.at, "is another GPU model than "+products.Text(r.GPUModel)+", which the container asks for", "keep one of them")
			return
		}
		r.GPUModel = both
	}
}
