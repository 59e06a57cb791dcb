package sched

import (
	"cmp"
	"slices"

	"gbatch/sched/spec"
)

// node is a Node with its load. It outlives RemoveNode while jobs hold
// anything on it.
type node struct {
	spec.Node
	folded string // name as Shape.Node is compared with it
	kind   *nodeKind
	gone   bool // removed, or never reported: it takes no jobs

	usable gpuSet  // GPUs that are not drained
	used   []int32 // thousandths in use, by GPU
	free   gpuSet  // usable and not used at all
	part   gpuSet  // usable and partly used

	cpuFree, memFree int64 // below 0 when the node shrank under its jobs

	ranks   []*rank // what is held here, by job and rank number
	windows []cover // by start

	no               int // in State.sorted
	pos              int // in kind.nodes
	indexed          bool
	inWhole, inCores int

	version uint64    // changes with the load
	unused  lostValue // see round.unusable
}

// rank is one rank's allocation as the node sees it.
type rank struct {
	run      *run
	node     *node
	no       int
	gpus     []gpuUse        // on GPUs that the node reports
	lost     []spec.GPUShare // on GPUs that it no longer reports
	cpu, mem int64
	whole    bool // nothing else may be on the node
}

type gpuUse struct {
	gpu   int32
	milli int32
}

// open says that jobs may start here.
func (n *node) open() bool { return !n.gone && (n.State == "" || n.State == spec.Up) }

// idle says that nothing is held here.
func (n *node) idle() bool { return len(n.ranks) == 0 }

// take and give are inverse: a rank's allocation is put on the node, or lifted.
func (n *node) take(r *rank) {
	at, _ := slices.BinarySearchFunc(n.ranks, r, compareRanks)
	n.ranks = slices.Insert(n.ranks, at, r)
	n.cpuFree -= r.cpu
	n.memFree -= r.mem
	for _, u := range r.gpus {
		n.used[u.gpu] += u.milli
		n.mark(int(u.gpu))
	}
	n.version++
	n.kind.moved(n)
}

func (n *node) give(r *rank) {
	at, ok := slices.BinarySearchFunc(n.ranks, r, compareRanks)
	if !ok {
		panic("sched: a rank is not on its node " + n.Name)
	}
	n.ranks = slices.Delete(n.ranks, at, at+1)
	n.cpuFree += r.cpu
	n.memFree += r.mem
	for _, u := range r.gpus {
		n.used[u.gpu] -= u.milli
		n.mark(int(u.gpu))
	}
	n.version++
	n.kind.moved(n)
}

func (n *node) mark(g int) {
	n.free.remove(g)
	n.part.remove(g)
	switch u := n.used[g]; {
	case !n.usable.has(g):
	case u == 0:
		n.free.add(g)
	case u < WholeGPU:
		n.part.add(g)
	}
}

func compareRanks(a, b *rank) int {
	return cmp.Or(cmp.Compare(a.run.Job.ID, b.run.Job.ID), cmp.Compare(a.no, b.no))
}

// check recounts the node's load from its ranks.
func (n *node) check(bad func(string, ...any)) {
	cpu, mem := n.MilliCPU, n.MemMiB
	used := make([]int64, len(n.GPUs))
	whole := false
	for _, k := range n.ranks {
		cpu -= k.cpu
		mem -= k.mem
		whole = whole || k.whole
		for _, u := range k.gpus {
			used[u.gpu] += int64(u.milli)
		}
	}
	if whole && len(n.ranks) > 1 {
		bad("node %s is taken as a whole, and holds %d ranks", n.Name, len(n.ranks))
	}
	if cpu != n.cpuFree || mem != n.memFree {
		bad("node %s has %d milli CPU and %d MiB free, and counts %d and %d", n.Name, cpu, mem, n.cpuFree, n.memFree)
	}
	for g, u := range used {
		if u != int64(n.used[g]) || u > spec.WholeGPU {
			bad("GPU %s of node %s has %d of 1000 in use, and counts %d", n.GPUs[g].UUID, n.Name, u, n.used[g])
		}
		usable := n.usable.has(g)
		if n.free.has(g) != (usable && u == 0) || n.part.has(g) != (usable && u > 0 && u < spec.WholeGPU) {
			bad("GPU %s of node %s is in the wrong set", n.GPUs[g].UUID, n.Name)
		}
	}
	k := n.kind
	if n.indexed != n.open() {
		bad("node %s is open: %t, and in the index: %t", n.Name, n.open(), n.indexed)
	}
	if n.indexed && (!k.whole[n.free.count()].has(n.pos) || k.part.has(n.pos) == n.part.empty() || k.nodes[n.pos] != n) {
		bad("node %s is in the wrong place of the index", n.Name)
	}
}
