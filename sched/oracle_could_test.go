package sched

import (
	"slices"
	"strings"

	"gbatch/sched/spec"
)

// could says whether an empty node with all its GPUs in order could hold a rank.
func could(n Node, s *Shape) bool {
	if s.Cluster != 0 && s.Cluster != n.Cluster || s.Node != "" && spec.Fold(s.Node) != spec.Fold(n.Name) || s.MinCUDA > n.CUDA || s.DiskMiB > n.DiskMiB {
		return false
	}
	for _, f := range s.Features {
		if !slices.Contains(n.Features, f) {
			return false
		}
	}
	if len(s.Partitions) > 0 && !slices.ContainsFunc(s.Partitions, func(p string) bool { return slices.Contains(n.Partitions, p) }) {
		return false
	}
	for _, any := range s.AnyFeatures {
		if !slices.ContainsFunc(n.Features, func(f string) bool { return slices.Contains(any, f) }) {
			return false
		}
	}
	if _, ok := stored(n, s); !ok {
		return false
	}
	same := func(name string) bool { return spec.Fold(name) == spec.Fold(n.Name) }
	if len(s.NodeNames) > 0 && !slices.ContainsFunc(s.NodeNames, same) || slices.ContainsFunc(s.ExcludeNodes, same) {
		return false
	}
	if s.MilliCPU > n.MilliCPU || s.MemMiB > n.MemMiB {
		return false
	}
	if s.MilliGPU > 0 && s.MilliGPU < 1000 && !n.AllowShare {
		return false
	}
	ok := 0
	for _, g := range n.GPUs {
		if suits(g, s) {
			ok++
		}
	}
	if s.AllGPUs && ok == 0 {
		return false
	}
	constrained := len(s.GPUModels) > 0 || s.GPUMemMiB > 0 || s.MinComputeCap > 0
	return int64(ok)*1000 >= s.MilliGPU && (ok > 0 || !constrained)
}

func suits(g GPU, s *Shape) bool {
	mem := g.MemMiB
	if s.MilliGPU > 0 && s.MilliGPU < 1000 {
		mem = mem * s.MilliGPU / 1000
	}
	if mem < s.GPUMemMiB || g.ComputeCap < s.MinComputeCap {
		return false
	}
	for _, m := range s.GPUModels {
		if strings.Contains(strings.ToLower(g.Model), strings.ToLower(m)) {
			return true
		}
	}
	return len(s.GPUModels) == 0
}
