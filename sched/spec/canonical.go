package spec

import (
	"fmt"
	"slices"
	"strings"
)

// Canonical is the shape with its lists sorted, and two texts: one that is equal
// for equal requests, and one that leaves out the amounts of a rank.
func (s *Shape) Canonical() (n Shape, bounds, key string) {
	n = *s
	n.Nodes = s.Alike()
	if n.PerNode = min(s.PerNode, s.Ranks()); n.PerNode < 2 {
		n.PerNode = 0
	}
	n.GPUModels = sortedSet(s.GPUModels, strings.ToLower)
	n.Features = sortedSet(s.Features, func(f string) string { return f })
	n.NodeNames, n.ExcludeNodes = sortedSet(s.NodeNames, Fold), sortedSet(s.ExcludeNodes, Fold)
	n.AnyFeatures = nil
	for _, any := range s.AnyFeatures {
		n.AnyFeatures = append(n.AnyFeatures, sortedSet(any, func(f string) string { return f }))
	}
	slices.SortFunc(n.AnyFeatures, slices.Compare)
	n.Storage = slices.Clone(s.Storage)
	slices.SortFunc(n.Storage, func(a, b Storage) int { return strings.Compare(a.key(), b.key()) })
	n.Storage = slices.Compact(n.Storage)
	n.Licenses = slices.Clone(s.Licenses)
	slices.SortFunc(n.Licenses, func(a, b License) int { return strings.Compare(a.Name, b.Name) })
	var part int64 // a share of a GPU
	switch {
	case n.MilliGPU%WholeGPU == 0:
	case n.GPUMemMiB > 0:
		part = n.MilliGPU // a larger share has more memory, and so may fit where a smaller one does not
	default:
		part = 1
	}
	bounds = fmt.Sprintf("%d %d %t %t %d %q %q %d %d %d %q %d", n.Nodes, n.RestMilliGPU, n.AllGPUs, n.Exclusive, n.Cluster, Fold(n.Node),
		n.GPUModels, n.GPUMemMiB, n.MinCUDA, n.MinComputeCap, n.Features, part)
	if n.PerNode > 0 {
		bounds += fmt.Sprintf(" %d on a node", n.PerNode)
	}
	if n.AllMem {
		bounds += " all memory"
	}
	if n.DiskMiB > 0 {
		bounds += fmt.Sprintf(" disk %d", n.DiskMiB)
	}
	if len(n.AnyFeatures)+len(n.NodeNames)+len(n.ExcludeNodes) > 0 {
		bounds += fmt.Sprintf(" %q %q %q", n.AnyFeatures, n.NodeNames, n.ExcludeNodes)
	}
	if len(n.Storage) > 0 {
		bounds += " storage"
		for _, x := range n.Storage {
			bounds += fmt.Sprintf(" %q", x.key())
		}
	}
	for _, x := range n.Licenses {
		bounds += fmt.Sprintf(" license %q %d", x.Name, x.Count)
	}
	n.Groups = nil
	for _, g := range s.Groups {
		g, text := g.canonical(strings.ToLower)
		n.Groups = append(n.Groups, g)
		bounds += text
	}
	if len(n.Partitions) > 0 {
		bounds += fmt.Sprintf(" in %q", n.Partitions)
	}
	return n, bounds, fmt.Sprintf("%s %d %d %d", bounds, n.MilliGPU, n.MilliCPU, n.MemMiB)
}

func sortedSet(in []string, each func(string) string) []string {
	out := make([]string, len(in))
	for i, x := range in {
		out[i] = each(x)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
