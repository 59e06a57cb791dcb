package nodes

import (
	"cmp"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"

	"gbatch/sched/spec"
)

// Kind is what nodes of equal hardware have in common. Whether a shape can
// ever run on a node is decided once per kind, and the nodes of a kind are
// indexed by what is free on them, so that a search looks at few.
type Kind struct {
	key    string
	Sample *spec.Node // any node of the kind: capacity, models, features
	GPUs   GPUSet     // all of them
	groups [][]GPUSet // by closeness: sets of GPUs within one domain, see topology.go
	Value  int64      // of its most valuable GPU

	Nodes    []*Node   // by name; position in it is node.pos
	Known    int       // how many are not removed
	Taking   int       // how many take jobs
	Switched bool      // some node is under a switch
	whole    []nodeSet // by number of free whole GPUs: nodes that take jobs
	part     nodeSet   // of these, the ones with a GPU that is partly used
	cores    []nodeSet // by bit length of the free cores
	stale    bool      // nodes came or went
}

// kindKey is equal for nodes that placement need not tell apart but by load.
func kindKey(n *spec.Node) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %d %d %d %d %t", n.Cluster, n.MilliCPU, n.MemMiB, n.DiskMiB, n.CUDA, n.AllowShare)
	features := slices.Clone(n.Features)
	slices.Sort(features)
	fmt.Fprintf(&b, " %q", slices.Compact(features))
	if n.Storage != nil {
		roots := slices.SortedFunc(slices.Values(n.Storage), func(a, c spec.Root) int { return cmp.Compare(a.Name, c.Name) })
		b.WriteString(" storage")
		for _, r := range roots {
			fmt.Fprintf(&b, " %q/%t/%t", r.Name, r.ReadOnly, r.Away != "")
		}
	}
	if len(n.Partitions) > 0 {
		fmt.Fprintf(&b, " in %q", slices.Sorted(slices.Values(n.Partitions)))
	}
	at := map[string]int{}
	for i, g := range n.GPUs {
		at[g.UUID] = i
	}
	for _, g := range n.GPUs {
		fmt.Fprintf(&b, " %q/%d/%d/%d", g.Model, g.MemMiB, g.ComputeCap, g.NUMA)
		var peers []int
		for _, l := range g.Links {
			if i, ok := at[l]; ok {
				peers = append(peers, i)
			}
		}
		slices.Sort(peers)
		fmt.Fprintf(&b, "%d", peers)
	}
	return b.String()
}

func coresBucket(milli int64) int { return bits.Len64(uint64(max(milli, 0) / 1000)) }

const coresBuckets = 32

// refresh rebuilds the index after nodes came, went or changed state.
func (kind *Kind) refresh() {
	if !kind.stale {
		return
	}
	kind.stale = false
	slices.SortFunc(kind.Nodes, func(a, b *Node) int { return cmp.Compare(a.Name, b.Name) })
	kind.Switched = false
	words := (len(kind.Nodes) + 63) / 64
	sets := func(n int) []nodeSet {
		all := make(nodeSet, n*words)
		out := make([]nodeSet, n)
		for i := range out {
			out[i] = all[i*words : (i+1)*words]
		}
		return out
	}
	kind.whole, kind.cores, kind.part, kind.Known, kind.Taking = sets(len(kind.Sample.GPUs)+1), sets(coresBuckets), make(nodeSet, words), 0, 0
	for i, n := range kind.Nodes {
		n.pos = i
		n.indexed = false
		kind.Switched = kind.Switched || n.Switch != ""
		if !n.Gone {
			kind.Known++
		}
		if n.TakesJobs() {
			kind.Taking++
			kind.insert(n)
		}
	}
}

func (kind *Kind) insert(n *Node) {
	n.indexed = true
	n.inWhole, n.inCores = n.Free.Count(), min(coresBucket(n.CPUFree), coresBuckets-1)
	kind.whole[n.inWhole].add(n.pos)
	kind.cores[n.inCores].add(n.pos)
	if !n.part.Empty() {
		kind.part.add(n.pos)
	}
}

// moved puts the node where it belongs after its load changed.
func (kind *Kind) moved(n *Node) {
	if kind.stale || !n.indexed {
		return
	}
	if w := n.Free.Count(); w != n.inWhole {
		kind.whole[n.inWhole].remove(n.pos)
		kind.whole[w].add(n.pos)
		n.inWhole = w
	}
	if c := min(coresBucket(n.CPUFree), coresBuckets-1); c != n.inCores {
		kind.cores[n.inCores].remove(n.pos)
		kind.cores[c].add(n.pos)
		n.inCores = c
	}
	if n.part.Empty() {
		kind.part.remove(n.pos)
	} else {
		kind.part.add(n.pos)
	}
}

// newKind makes the kind of a node.
func (ix *Index) newKind(key string, n *spec.Node) *Kind {
	kind := &Kind{key: key, Sample: n, stale: true}
	for i := range n.GPUs {
		kind.GPUs.Add(i)
	}
	kind.groups = gpuGroups(n)
	kind.Value = ix.kindValue(n)
	ix.kinds[key] = kind
	ix.Order = append(ix.Order, kind)
	ix.sortKinds()
	return kind
}

func (ix *Index) dropKind(kind *Kind) {
	delete(ix.kinds, kind.key)
	ix.Order = slices.DeleteFunc(ix.Order, func(other *Kind) bool { return other == kind })
	for _, shape := range ix.Shapes {
		shape.forget(kind)
	}
}

func (ix *Index) sortKinds() {
	slices.SortFunc(ix.Order, func(a, b *Kind) int {
		return cmp.Or(cmp.Compare(a.Value, b.Value), cmp.Compare(a.key, b.key))
	})
}

// SetValues says what GPU models are worth, by part of the name.
func (ix *Index) SetValues(values map[string]int64) {
	ix.values = values
	for _, kind := range ix.Order {
		kind.Value = ix.kindValue(kind.Sample)
	}
	ix.sortKinds()
}

// kindValue is what the most valuable GPU of a node is worth; 0 without GPUs.
func (ix *Index) kindValue(n *spec.Node) int64 {
	var v int64
	for _, g := range n.GPUs {
		v = max(v, ix.valueOf(g.Model))
	}
	return v
}

// valueOf a GPU model: of the longest name in values that is part of it.
func (ix *Index) valueOf(model string) int64 {
	model = strings.ToLower(model)
	best, name := int64(spec.WholeGPU), ""
	for m, v := range ix.values { // the longest name wins, then the first: order does not matter
		if strings.Contains(model, strings.ToLower(m)) && (len(m) > len(name) || len(m) == len(name) && m < name) {
			best, name = v, m
		}
	}
	return best
}

// Models is the GPU models of all nodes that are known, by name.
func (ix *Index) Models() []string {
	set := map[string]bool{}
	for _, kind := range ix.Order {
		if kind.Known == 0 {
			continue
		}
		for _, g := range kind.Sample.GPUs {
			set[g.Model] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}
