// Package products has the models of GPUs that names of products and labels of nodes stand
// for, as jobs ask for them. It is pure.
package products

import (
	"slices"
	"strings"

	"gbatch/sched/models"
)

// OfProduct is a GPU's model as it is asked for, of the name of a product: the
// whole name, since an L4 is part of that of an L40S. Labels of nodes have - for each blank.
func OfProduct(product string) []string {
	name := strings.TrimPrefix(strings.ReplaceAll(strings.ToUpper(product), "-", " "), "NVIDIA ")
	return []string{"=" + strings.TrimPrefix(strings.TrimPrefix(name, "TESLA "), "GEFORCE ")}
}

// GKE is the label of GKE's nodes, whose values are no names of products.
const GKE = "cloud.google.com/gke-accelerator"

// gkeModels are the models of its values of which the words are no part of the product's
// name: there are others between them, or it has no such word.
var gkeModels = map[string][]string{
	"nvidia-a100-80gb":      {"=A100 80GB *", "=A100 SXM4 80GB *", "=A100 PCIE 80GB *"},
	"nvidia-h100-mega-80gb": {"=H100 80GB *"},
	"nvidia-h200-141gb":     {"=H200 *"},
}

// OfLabel are the models that a value of a label names.
func OfLabel(label, value string) []string {
	if models := gkeModels[strings.ToLower(value)]; label == GKE && models != nil {
		return models
	}
	if label == GKE { // nvidia-tesla-a100, which says nothing of its form
		return []string{OfProduct(value)[0] + " *"}
	}
	return OfProduct(value)
}

// Both are the models that are of each list: of A100 and A100 SXM4 80GB the latter.
func Both(a, b []string) []string {
	var both []string
	for _, one := range a {
		for _, other := range b {
			switch {
			case models.Has(other, Bare(one)) && !slices.Contains(both, one):
				both = append(both, one)
			case !models.Has(other, Bare(one)) && models.Has(one, Bare(other)) && !slices.Contains(both, other):
				both = append(both, other)
			}
		}
	}
	return both
}

// Bare is the name in a model that is asked for.
func Bare(asked string) string {
	return strings.TrimSuffix(strings.TrimPrefix(asked, "="), " *")
}

// Text names models to people.
func Text(models []string) string {
	var names []string
	for _, m := range models {
		names = append(names, Bare(m))
	}
	return strings.Join(names, " or ")
}

// OfModel says that a label names the model of a node's GPUs.
func OfModel(label string) bool {
	switch label {
	case "nvidia.com/gpu.product", GKE, "gpu.nvidia.com/class", "k8s.amazonaws.com/accelerator":
		return true
	}
	return false
}

// OfEveryNode says that a label is the same for all nodes, or is not looked at.
func OfEveryNode(label string) bool {
	switch label {
	case "kubernetes.io/os", "kubernetes.io/arch", "beta.kubernetes.io/os", "beta.kubernetes.io/arch":
		return true
	}
	return false
}
