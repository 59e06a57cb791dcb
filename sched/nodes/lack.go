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
}

// Lack is what the node has free of what a rank of the shape needs.
func (n *Node) Lack(shape *Shape, f Fit) Lack {
	return Lack{n.Name, n.FreeFor(shape, f), max(n.CPUFree, 0), max(n.MemFree, 0), len(n.Ranks), n.Kind.GPUs.AndNot(n.Usable).Count()}
}

// Words is what is lacking there.
func (l *Lack) Words(shape *Shape) string {
	if shape.Whole() && l.ranks > 0 {
		return "in use by " + words.Plural(l.ranks, "rank")
	}
	var lacks []string
	if shape.MilliGPU > l.Free {
		lacks = append(lacks, fmt.Sprintf("%s of %s GPUs free", words.Thousandths(l.Free), words.Thousandths(shape.MilliGPU)))
	}
	if l.MilliCPU < shape.MilliCPU {
		lacks = append(lacks, fmt.Sprintf("%s of %s cores free", words.Thousandths(l.MilliCPU), words.Thousandths(shape.MilliCPU)))
	}
	if l.MemMiB < shape.MemMiB {
		lacks = append(lacks, fmt.Sprintf("%s of %s GiB free", words.GiB(l.MemMiB), words.GiB(shape.MemMiB)))
	}
	if l.drained > 0 {
		lacks = append(lacks, words.Plural(l.drained, "GPU")+" drained")
	}
	if len(lacks) == 0 {
		return "in use by " + words.Plural(l.ranks, "rank") // one that takes the whole node
	}
	return strings.Join(lacks, ", ")
}

// FreeFor is the GPU thousandths that are free and satisfy the shape, or of a
// shape without GPUs the cores.
func (n *Node) FreeFor(shape *Shape, f Fit) int64 {
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
