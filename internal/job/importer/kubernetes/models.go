package kubernetes

import (
	"slices"
	"strings"

	"gbatch/sched/models"
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
		if models = bothModels(g.models, models); len(models) == 0 {
			d.Problem(n, "is another GPU model than "+modelsText(g.models)+", which the job asks for as well", "keep one of them")
			return
		}
	}
	g.at, g.models = n, models
	d.Note(n, "is understood as the GPU model "+modelsText(models))
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
		both := bothModels(g.models, r.GPUModel)
		if len(both) == 0 {
			d.Problem(g.at, "is another GPU model than "+modelsText(r.GPUModel)+", which the container asks for", "keep one of them")
			return
		}
		r.GPUModel = both
	}
}

// productModels is a GPU's model as it is asked for, of the name of a product: the
// whole name, since an L4 is part of that of an L40S. Labels of nodes have - for each blank.
func productModels(product string) []string {
	name := strings.TrimPrefix(strings.ReplaceAll(strings.ToUpper(product), "-", " "), "NVIDIA ")
	return []string{"=" + strings.TrimPrefix(strings.TrimPrefix(name, "TESLA "), "GEFORCE ")}
}

// gkeAccelerator is the label of GKE's nodes, whose values are no names of products.
const gkeAccelerator = "cloud.google.com/gke-accelerator"

// gkeModels are the models of its values of which the words are no part of the product's
// name: there are others between them, or it has no such word.
var gkeModels = map[string][]string{
	"nvidia-a100-80gb":      {"=A100 80GB *", "=A100 SXM4 80GB *", "=A100 PCIE 80GB *"},
	"nvidia-h100-mega-80gb": {"=H100 80GB *"},
	"nvidia-h200-141gb":     {"=H200 *"},
}

// labelModels are the models that a value of a label names.
func labelModels(label, value string) []string {
	if models := gkeModels[strings.ToLower(value)]; label == gkeAccelerator && models != nil {
		return models
	}
	if label == gkeAccelerator { // nvidia-tesla-a100, which says nothing of its form
		return []string{productModels(value)[0] + " *"}
	}
	return productModels(value)
}

// bothModels are the models that are of each list: of A100 and A100 SXM4 80GB the latter.
func bothModels(a, b []string) []string {
	var both []string
	for _, one := range a {
		for _, other := range b {
			switch {
			case models.Has(other, bareModel(one)) && !slices.Contains(both, one):
				both = append(both, one)
			case !models.Has(other, bareModel(one)) && models.Has(one, bareModel(other)) && !slices.Contains(both, other):
				both = append(both, other)
			}
		}
	}
	return both
}

// bareModel is the name in a model that is asked for.
func bareModel(asked string) string {
	return strings.TrimSuffix(strings.TrimPrefix(asked, "="), " *")
}

// modelsText names models to people.
func modelsText(models []string) string {
	var names []string
	for _, m := range models {
		names = append(names, bareModel(m))
	}
	return strings.Join(names, " or ")
}
