package nodes

import (
	"fmt"
	"slices"
	"strings"

	"gbatch/sched/spec"
	"gbatch/sched/words"
)

// NeverText says what no node has, and what the nearest ones have.
func (ix *Index) NeverText(shape *Shape, matching int) string {
	if len(shape.Groups) > 0 {
		return ix.neverGroups(shape, matching)
	}
	if matching > 0 {
		among := ""
		if shape.choosy() {
			among = " among those that it allows by name"
		}
		return fmt.Sprintf("needs %d nodes that each have %s: there are %d%s", shape.Ranks(), shape.rankText(), matching, among)
	}
	most, named := FitsAll, !shape.choosy()
	var near *Kind
	for _, nodeKind := range ix.Order {
		has := slices.ContainsFunc(nodeKind.Nodes, func(n *Node) bool { return !n.Gone && shape.Named(n) })
		if !has {
			continue
		}
		named = true
		f := shape.On(nodeKind)
		if near == nil || f.Why > most || f.Why == most && larger(nodeKind.Sample, near.Sample) {
			most, near = f.Why, nodeKind
		}
	}
	switch {
	case !named:
		return shape.namesText()
	case near == nil:
		return "there are no nodes"
	}
	models := ix.Models()
	if len(models) == 0 && (most == lacksModel || most == fewGPUs) {
		return "no node has a GPU"
	}
	in := ""
	if len(shape.Partitions) > 0 {
		in = " of " + words.Names("partition", shape.Partitions)
	}
	n := near.Sample
	largest := fmt.Sprintf("largest: %s on %s", capacityText(n, near.GPUs), firstName(near))
	switch most {
	case wrongCluster:
		return fmt.Sprintf("no node%s is in cluster %d", in, shape.Cluster)
	case wrongPartition:
		return "no node is in " + words.Names("partition", shape.Partitions)
	case lacksFeature:
		return ix.featuresText(shape)
	case lacksStorage:
		return ix.storageText(shape)
	case lacksModel:
		return fmt.Sprintf(`no node has gpuModel "%s" (models here: %s)`, strings.Join(shape.GPUModels, `" or "`), strings.Join(models, ", "))
	case lacksGPUMem:
		return fmt.Sprintf("no such GPU has %s GiB of memory", words.GiB(shape.GPUMemMiB))
	case lacksComputeCap:
		return fmt.Sprintf("no such GPU has compute capability %d.%d", shape.MinComputeCap/10, shape.MinComputeCap%10)
	case lacksCUDA:
		return fmt.Sprintf("no such node has CUDA %d.%d", shape.MinCUDA/100, shape.MinCUDA%100)
	case lacksDisk:
		return fmt.Sprintf("no such node has a disk of %s GiB", words.GiB(shape.DiskMiB))
	case noSharing:
		return "no node with such GPUs allows shares of a GPU: ask for a whole one"
	}
	return fmt.Sprintf("no node%s has %s (%s)", in, shape.rankText(), largest)
}

func larger(a, b *spec.Node) bool {
	if len(a.GPUs) != len(b.GPUs) {
		return len(a.GPUs) > len(b.GPUs)
	}
	return a.MilliCPU > b.MilliCPU
}

func firstName(nodeKind *Kind) string {
	name := ""
	for _, n := range nodeKind.Nodes {
		if n.Gone || name != "" && n.Name >= name {
			continue
		}
		name = n.Name
		if !nodeKind.stale {
			break // they are in the order of their names
		}
	}
	return name
}

func capacityText(n *spec.Node, gpus GPUSet) string {
	model := "GPU"
	if g := gpus.Next(0); g >= 0 {
		model = n.GPUs[g].Model
	}
	return fmt.Sprintf("%d x %s, %s, %s GiB", gpus.Count(), model, words.Cores(n.MilliCPU), words.GiB(n.MemMiB))
}

// featuresText says what no node has, by the node that lacks the least.
func (ix *Index) featuresText(shape *Shape) string {
	var least []string
	name := ""
	for _, nodeKind := range ix.Order {
		if l := shape.lacks(nodeKind.Sample); shape.On(nodeKind).Why == lacksFeature && (name == "" || len(l) < len(least)) {
			least, name = l, firstName(nodeKind)
		}
	}
	if len(shape.Features)+len(shape.AnyFeatures) == 1 {
		return "no node has the feature " + least[0]
	}
	return fmt.Sprintf("no node has all the features: nearest is %s, which lacks %s", name, strings.Join(least, " and "))
}
