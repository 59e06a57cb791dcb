package nodes

import (
	"cmp"
	"slices"

	"gbatch/sched/spec"
)

// Node is a Node with its load. It outlives RemoveNode while jobs hold
// anything on it.
type Node struct {
	spec.Node
	Folded string // name as Shape.Node is compared with it
	Kind   *Kind
	Gone   bool // removed, or never reported: it takes no jobs

	Usable GPUSet  // GPUs that are not drained
	Used   []int32 // thousandths in use, by GPU
	Free   GPUSet  // usable and not used at all
	part   GPUSet  // usable and partly used

	CPUFree, MemFree, DiskFree int64 // below 0 when the node shrank under its jobs

	Ranks   []*Rank // what is held here, by job and rank number
	Windows []cover // by start

	No               int   // in State.sorted
	place            int32 // of those that take jobs, in the order of the index; of a round
	pos              int   // in kind.nodes
	indexed          bool
	inWhole, inCores int

	Version uint64 // changes with the load
	Unused  Loss   // see round.unusable
}

// Rank is one rank's allocation as the node sees it.
type Rank struct {
	Run              *Run
	Node             *Node
	No               int
	GPUs             []GPUUse        // on GPUs that the node reports
	lost             []spec.GPUShare // on GPUs that it no longer reports
	MilliCPU, MemMiB int64
	DiskMiB          int64
	Whole            bool // nothing else may be on the node
}

type GPUUse struct {
	GPU   int32
	Milli int32
}

// TakesJobs says that jobs may start here.
func (n *Node) TakesJobs() bool { return !n.Gone && (n.State == "" || n.State == spec.Up) }

// Idle says that nothing is held here.
func (n *Node) Idle() bool { return len(n.Ranks) == 0 }

// Take puts a rank's allocation on the node. Give is its inverse.
func (n *Node) Take(rank *Rank) {
	at, _ := slices.BinarySearchFunc(n.Ranks, rank, compareRanks)
	n.Ranks = slices.Insert(n.Ranks, at, rank)
	n.CPUFree -= rank.MilliCPU
	n.MemFree -= rank.MemMiB
	n.DiskFree -= rank.DiskMiB
	for _, u := range rank.GPUs {
		n.Used[u.GPU] += u.Milli
		n.mark(int(u.GPU))
	}
	n.Version++
	n.Kind.moved(n)
}

func (n *Node) Give(rank *Rank) {
	at, ok := slices.BinarySearchFunc(n.Ranks, rank, compareRanks)
	if !ok {
		panic("sched: a rank is not on its node " + n.Name)
	}
	n.Ranks = slices.Delete(n.Ranks, at, at+1)
	n.CPUFree += rank.MilliCPU
	n.MemFree += rank.MemMiB
	n.DiskFree += rank.DiskMiB
	for _, u := range rank.GPUs {
		n.Used[u.GPU] -= u.Milli
		n.mark(int(u.GPU))
	}
	n.Version++
	n.Kind.moved(n)
}

func (n *Node) mark(g int) {
	n.Free.Remove(g)
	n.part.Remove(g)
	switch u := n.Used[g]; {
	case !n.Usable.Has(g):
	case u == 0:
		n.Free.Add(g)
	case u < spec.WholeGPU:
		n.part.Add(g)
	}
}

func compareRanks(a, b *Rank) int {
	return cmp.Or(cmp.Compare(a.Run.Job.ID, b.Run.Job.ID), cmp.Compare(a.No, b.No))
}

// Check recounts the node's load from its ranks.
func (n *Node) Check(bad func(string, ...any)) {
	cpu, mem, disk := n.MilliCPU, n.MemMiB, n.DiskMiB
	used := make([]int64, len(n.GPUs))
	whole := false
	for _, rank := range n.Ranks {
		cpu -= rank.MilliCPU
		mem -= rank.MemMiB
		disk -= rank.DiskMiB
		whole = whole || rank.Whole
		for _, u := range rank.GPUs {
			used[u.GPU] += int64(u.Milli)
		}
	}
	if whole && len(n.Ranks) > 1 {
		bad("node %s is taken as a whole, and holds %d ranks", n.Name, len(n.Ranks))
	}
	if cpu != n.CPUFree || mem != n.MemFree || disk != n.DiskFree {
		bad("node %s has %d milli CPU, %d MiB and %d MiB of disk free, and counts %d, %d and %d", n.Name, cpu, mem, disk, n.CPUFree, n.MemFree, n.DiskFree)
	}
	for g, u := range used {
		if u != int64(n.Used[g]) || u > spec.WholeGPU {
			bad("GPU %s of node %s has %d of 1000 in use, and counts %d", n.GPUs[g].UUID, n.Name, u, n.Used[g])
		}
		usable := n.Usable.Has(g)
		if n.Free.Has(g) != (usable && u == 0) || n.part.Has(g) != (usable && u > 0 && u < spec.WholeGPU) {
			bad("GPU %s of node %s is in the wrong set", n.GPUs[g].UUID, n.Name)
		}
	}
	kind := n.Kind
	if n.indexed != n.TakesJobs() {
		bad("node %s takes jobs: %t, and in the index: %t", n.Name, n.TakesJobs(), n.indexed)
	}
	if n.indexed && (!kind.whole[n.Free.Count()].has(n.pos) || kind.part.has(n.pos) == n.part.Empty() || kind.Nodes[n.pos] != n) {
		bad("node %s is in the wrong place of the index", n.Name)
	}
}
