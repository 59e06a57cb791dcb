package sched

import (
	"fmt"
	"strings"

	"gbatch/sched/spec"
	"gbatch/sched/words"
)

// lack is what a node has free of what a rank needs.
type lack struct {
	node           string
	free, cpu, mem int64 // see freeFor; thousandths of cores, MiB
	ranks, drained int   // held, and GPUs of it
}

func (n *node) lack(x *shape, f fit) lack {
	return lack{n.Name, n.freeFor(x, f), max(n.cpuFree, 0), max(n.memFree, 0), len(n.ranks), n.kind.gpus.andNot(n.usable).count()}
}

// words is what is lacking there.
func (l *lack) words(x *shape) string {
	if x.Whole() && l.ranks > 0 {
		return "in use by " + words.Plural(l.ranks, "rank")
	}
	var lacks []string
	if x.MilliGPU > l.free {
		lacks = append(lacks, fmt.Sprintf("%s of %s GPUs free", words.Thousandths(l.free), words.Thousandths(x.MilliGPU)))
	}
	if l.cpu < x.MilliCPU {
		lacks = append(lacks, fmt.Sprintf("%s of %s cores free", words.Thousandths(l.cpu), words.Thousandths(x.MilliCPU)))
	}
	if l.mem < x.MemMiB {
		lacks = append(lacks, fmt.Sprintf("%s of %s GiB free", words.GiB(l.mem), words.GiB(x.MemMiB)))
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
func (n *node) freeFor(x *shape, f fit) int64 {
	if x.MilliGPU == 0 && !x.AllGPUs {
		return max(n.cpuFree, 0)
	}
	if x.share() {
		var most int64
		for g := f.gpus.next(0); g >= 0; g = f.gpus.next(g + 1) {
			if n.usable.has(g) {
				most = max(most, spec.WholeGPU-int64(n.used[g]))
			}
		}
		return most
	}
	return int64(f.gpus.and(n.free).count()) * spec.WholeGPU
}
