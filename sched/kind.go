package sched

import (
	"cmp"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"

	"gbatch/sched/spec"
)

// nodeKind is what nodes of equal hardware have in common. Whether a shape can
// ever run on a node is decided once per kind, and the nodes of a kind are
// indexed by what is free on them, so that a search looks at few.
type nodeKind struct {
	key    string
	sample *spec.Node // any node of the kind: capacity, models, features
	gpus   gpuSet     // all of them
	groups [][]gpuSet // by closeness: sets of GPUs within one domain, see topology.go
	value  int64      // of its most valuable GPU

	nodes    []*node   // by name; position in it is node.pos
	known    int       // how many are not removed
	open     int       // how many take jobs
	switched bool      // some node is under a switch
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
func (k *nodeKind) refresh() {
	if !k.stale {
		return
	}
	k.stale = false
	slices.SortFunc(k.nodes, func(a, b *node) int { return cmp.Compare(a.Name, b.Name) })
	k.switched = false
	words := (len(k.nodes) + 63) / 64
	sets := func(n int) []nodeSet {
		all := make(nodeSet, n*words)
		out := make([]nodeSet, n)
		for i := range out {
			out[i] = all[i*words : (i+1)*words]
		}
		return out
	}
	k.whole, k.cores, k.part, k.known, k.open = sets(len(k.sample.GPUs)+1), sets(coresBuckets), make(nodeSet, words), 0, 0
	for i, n := range k.nodes {
		n.pos = i
		n.indexed = false
		k.switched = k.switched || n.Switch != ""
		if !n.gone {
			k.known++
		}
		if n.open() {
			k.open++
			k.insert(n)
		}
	}
}

func (k *nodeKind) insert(n *node) {
	n.indexed = true
	n.inWhole, n.inCores = n.free.count(), min(coresBucket(n.cpuFree), coresBuckets-1)
	k.whole[n.inWhole].add(n.pos)
	k.cores[n.inCores].add(n.pos)
	if !n.part.empty() {
		k.part.add(n.pos)
	}
}

func (k *nodeKind) remove(n *node) {
	n.indexed = false
	k.whole[n.inWhole].remove(n.pos)
	k.cores[n.inCores].remove(n.pos)
	k.part.remove(n.pos)
}

// moved puts the node where it belongs after its load changed.
func (k *nodeKind) moved(n *node) {
	if k.stale || !n.indexed {
		return
	}
	if w := n.free.count(); w != n.inWhole {
		k.whole[n.inWhole].remove(n.pos)
		k.whole[w].add(n.pos)
		n.inWhole = w
	}
	if c := min(coresBucket(n.cpuFree), coresBuckets-1); c != n.inCores {
		k.cores[n.inCores].remove(n.pos)
		k.cores[c].add(n.pos)
		n.inCores = c
	}
	if n.part.empty() {
		k.part.remove(n.pos)
	} else {
		k.part.add(n.pos)
	}
}

// newKind makes the kind of a node.
func (ix *index) newKind(key string, n *spec.Node) *nodeKind {
	k := &nodeKind{key: key, sample: n, stale: true}
	for i := range n.GPUs {
		k.gpus.add(i)
	}
	k.groups = gpuGroups(n)
	k.value = ix.kindValue(n)
	ix.kinds[key] = k
	ix.order = append(ix.order, k)
	ix.sortKinds()
	return k
}

func (ix *index) dropKind(k *nodeKind) {
	delete(ix.kinds, k.key)
	ix.order = slices.DeleteFunc(ix.order, func(o *nodeKind) bool { return o == k })
	for _, x := range ix.shapes {
		delete(x.fits, k)
	}
}

func (ix *index) sortKinds() {
	slices.SortFunc(ix.order, func(a, b *nodeKind) int {
		return cmp.Or(cmp.Compare(a.value, b.value), cmp.Compare(a.key, b.key))
	})
}

// setValues says what GPU models are worth, by part of the name.
func (ix *index) setValues(values map[string]int64) {
	ix.values = values
	for _, k := range ix.order {
		k.value = ix.kindValue(k.sample)
	}
	ix.sortKinds()
}

// kindValue is what the most valuable GPU of a node is worth; 0 without GPUs.
func (ix *index) kindValue(n *spec.Node) int64 {
	var v int64
	for _, g := range n.GPUs {
		v = max(v, ix.valueOf(g.Model))
	}
	return v
}

// valueOf a GPU model: of the longest name in values that is part of it.
func (ix *index) valueOf(model string) int64 {
	model = strings.ToLower(model)
	best, name := int64(spec.WholeGPU), ""
	for m, v := range ix.values { // the longest name wins, then the first: order does not matter
		if strings.Contains(model, strings.ToLower(m)) && (len(m) > len(name) || len(m) == len(name) && m < name) {
			best, name = v, m
		}
	}
	return best
}

// models is the GPU models of all nodes that are known, by name.
func (ix *index) models() []string {
	set := map[string]bool{}
	for _, k := range ix.order {
		if k.known == 0 {
			continue
		}
		for _, g := range k.sample.GPUs {
			set[g.Model] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}
