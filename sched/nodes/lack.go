package nodes

import (
	"fmt"
	"strings"

	"gbatch/sched/spec"
	"gbatch/sched/words"
)

// Lack is what a node has free of what a rank needs.
type Lack struct {
	Node                   string
	Free, MilliCPU, MemMiB int64 // see freeFor; thousandths of cores, MiB
	ranks, drained         int   // held, and GPUs of it
	disk                   int64 // MiB
	mem                    int64 // MiB that a rank needs here
}

// Lack is what the node has free of what a rank of the shape needs.
func (n *Node) Lack(shape *Shape, f Fit) Lack {
	return Lack{n.Name, n.freeFor(shape, f), max(n.CPUFree, 0), max(n.MemFree, 0), len(n.Ranks), n.Kind.GPUs.AndNot(n.Usable).Count(), max(n.DiskFree, 0), shape.MemOf(n.MemMiB)}
}

// Words is what is lacking there.
func (l *Lack) Words(shape *Shape) string {
	if shape.Whole() && l.ranks > 0 {
		return "in use by " + words.Plural(l.ranks, "rank")
	}
	var lacks []string
	if shape.MilliGPU > l.Free {
		lacks = append(lacks, fmt.Sprintf("%s of %s free", words.Thousandths(l.Free), words.GPUs(shape.MilliGPU)))
	}
	if l.MilliCPU < shape.MilliCPU {
		lacks = append(lacks, fmt.Sprintf("%s of %s free", words.Thousandths(l.MilliCPU), words.Cores(shape.MilliCPU)))
	}
	if l.MemMiB < l.mem {
		lacks = append(lacks, fmt.Sprintf("%s of %s GiB free", words.GiB(l.MemMiB), words.GiB(l.mem)))
	}
	if l.disk < shape.DiskMiB {
		lacks = append(lacks, fmt.Sprintf("%s of %s GiB of disk free", words.GiB(l.disk), words.GiB(shape.DiskMiB)))
	}
	if l.drained > 0 {
		lacks = append(lacks, words.Plural(l.drained, "GPU")+" drained")
	}
	if len(lacks) == 0 {
		return "in use by " + words.Plural(l.ranks, "rank") // one that takes the whole node
	}
	return strings.Join(lacks, ", ")
}

// freeFor is the GPU thousandths that are free and satisfy the shape, or of a
// shape without GPUs the cores.
func (n *Node) freeFor(shape *Shape, f Fit) int64 {
	if shape.MilliGPU == 0 && !shape.AllGPUs {
		return max(n.CPUFree, 0)
	}
	if shape.Share() {
		var most int64
		for g := f.GPUs.Next(0); g >= 0; g = f.GPUs.Next(g + 1) {
			if n.Usable.Has(g) {
				most = max(most, spec.WholeGPU-int64(n.Used[g]))
			}
		}
		return most
	}
	return int64(f.GPUs.And(n.Free).Count()) * spec.WholeGPU
}

// MisfitText is why the node can never hold a rank of the shape, in words.
func (n *Node) MisfitText(shape *Shape, why misfit) string {
	switch why {
	case wrongCluster:
		return fmt.Sprintf("is in cluster %d", n.Cluster)
	case wrongPartition:
		if len(n.Partitions) == 0 {
			return "is in no partition"
		}
		return "is in " + words.Names("partition", n.Partitions)
	case lacksFeature:
		return fmt.Sprintf("lacks features: has %q", n.Features)
	case lacksStorage:
		return "lacks storage: has " + rootNames(n.Storage)
	case lacksModel:
		if len(n.GPUs) == 0 {
			return "has no GPU"
		}
		return fmt.Sprintf("has %s", n.GPUs[0].Model)
	case lacksGPUMem:
		return fmt.Sprintf("its GPUs have %s GiB", words.GiB(n.GPUs[0].MemMiB))
	case lacksComputeCap:
		return fmt.Sprintf("its GPUs have compute capability %d.%d", n.GPUs[0].ComputeCap/10, n.GPUs[0].ComputeCap%10)
	case lacksCUDA:
		return fmt.Sprintf("has CUDA %d.%d", n.CUDA/100, n.CUDA%100)
	case lacksDisk:
		return fmt.Sprintf("has a disk of %s GiB", words.GiB(n.DiskMiB))
	case noSharing:
		return "does not allow shares of a GPU"
	case fewGPUs:
		return fmt.Sprintf("has %d such GPUs of %d", shape.On(n.Kind).GPUs.Count(), shape.Least())
	case fewCores:
		return fmt.Sprintf("has %s of %s", words.Cores(n.MilliCPU), words.Thousandths(shape.MilliCPU))
	}
	return fmt.Sprintf("has %s GiB of %s", words.GiB(n.MemMiB), words.GiB(shape.MemMiB))
}
