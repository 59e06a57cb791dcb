package nodes

import (
	"fmt"
	"slices"
	"strings"

	"gbatch/sched/models"
	"gbatch/sched/spec"
	"gbatch/sched/words"
)

// Shape is an interned Shape: equal requests share one.
type Shape struct {
	spec.Shape
	Key    string // equal for equal requests
	Bounds string // the same, without the amounts of a rank
	nameRules
	Models []string // Shape.GPUModels in lower case

	Refs      int   // classes and running jobs
	Submitted int64 // jobs that wait or run with it, for the mix
	fits      map[*Kind]Fit
	Rest      *Shape           // of the rank with fewer GPUs, nil if there is none
	Groups    []*Shape         // of the ranks of each group, the shape's own first; nil if all are alike and have a node each
	Ways      []*Shape         // of several partitions: the same in each; else itself
	Losses    map[LossKey]Loss // see package mix
}

// Fit is whether nodes of a kind can ever hold a rank of a shape, when nothing
// else is on them and none of their GPUs is drained.
type Fit struct {
	OK   bool
	GPUs GPUSet // those that will do
	Why  misfit // what is missing first, where not ok
	Away string // storage of the shape that is away there now: nothing starts until it is back
}

// misfit is what a node lacks for ever, in the order in which it is told.
type misfit uint8

const (
	FitsAll misfit = iota
	wrongCluster
	wrongPartition
	wrongName
	lacksFeature
	lacksStorage
	lacksModel
	lacksGPUMem
	lacksComputeCap
	lacksCUDA
	lacksDisk
	noSharing
	fewGPUs
	fewCores
	littleMemory
)

// maxKnown bounds the requests whose shapes are found without a look at them.
const maxKnown = 1 << 14

// Intern finds or makes the shape for a request, which must not change any more.
func (ix *Index) Intern(in *spec.Shape) *Shape {
	if shape := ix.known[in]; shape != nil && ix.Shapes[shape.Key] == shape {
		return shape
	}
	n, bounds, key := in.Canonical()
	shape := ix.Shapes[key]
	if shape == nil {
		shape = newShape(in, n)
		shape.Key, shape.Bounds = key, bounds
		ix.Shapes[key] = shape
	}
	if len(ix.known) >= maxKnown {
		clear(ix.known)
	}
	ix.known[in] = shape
	return shape
}

// newShape is that of a request; n is its canonical form.
func newShape(in *spec.Shape, n spec.Shape) *Shape {
	lower := n.GPUModels
	n.GPUModels, n.Features = slices.Clone(in.GPUModels), slices.Clone(in.Features)
	n.NodeNames, n.ExcludeNodes = slices.Clone(in.NodeNames), slices.Clone(in.ExcludeNodes)
	n.Partitions = slices.Clone(in.Partitions)
	shape := &Shape{Shape: n, nameRules: newNameRules(in), Models: lower, fits: map[*Kind]Fit{}}
	if n.RestMilliGPU > 0 {
		rest := *shape
		rest.MilliGPU, rest.RestMilliGPU, rest.fits = n.RestMilliGPU, 0, map[*Kind]Fit{}
		shape.Rest = &rest
	}
	if len(n.Groups) > 0 || n.Shares() {
		shape.Groups = groupsOf(in)
	}
	shape.Ways = []*Shape{shape}
	if len(n.Partitions) > 1 {
		shape.Ways = nil
		for _, name := range n.Partitions {
			one := *in
			one.Partitions = []string{name}
			canonical, bounds, key := one.Canonical()
			way := newShape(&one, canonical)
			way.Key, way.Bounds = key, bounds
			shape.Ways = append(shape.Ways, way)
		}
	}
	return shape
}

// forget drops what is known of a kind of nodes.
func (shape *Shape) forget(kind *Kind) {
	delete(shape.fits, kind)
	if shape.Rest != nil {
		shape.Rest.forget(kind)
	}
	for _, g := range shape.Groups {
		g.forget(kind)
	}
	for _, way := range shape.Ways {
		if way != shape {
			way.forget(kind)
		}
	}
}

// in says whether nodes are in a partition that the shape names, or it names none.
func (shape *Shape) in(partitions []string) bool {
	return len(shape.Partitions) == 0 || slices.ContainsFunc(shape.Partitions, func(p string) bool { return slices.Contains(partitions, p) })
}

// Unref drops a shape that nothing refers to any more.
func (ix *Index) Unref(shape *Shape) {
	shape.Refs--
	if shape.Refs == 0 {
		delete(ix.Shapes, shape.Key)
	}
}

// Share says that a rank takes part of one GPU only.
func (shape *Shape) Share() bool { return shape.MilliGPU > 0 && shape.MilliGPU < spec.WholeGPU }

// whole GPUs of a rank.
func (shape *Shape) WholeGPUs() int { return int(shape.MilliGPU / spec.WholeGPU) }

// On is whether nodes of the kind can ever hold a rank.
func (shape *Shape) On(kind *Kind) Fit {
	f, ok := shape.fits[kind]
	if !ok {
		f = shape.match(kind)
		shape.fits[kind] = f
	}
	return f
}

func (shape *Shape) match(kind *Kind) Fit {
	n := kind.Sample
	var f Fit
	switch {
	case shape.Cluster != 0 && shape.Cluster != n.Cluster:
		f.Why = wrongCluster
		return f
	case !shape.in(n.Partitions):
		f.Why = wrongPartition
		return f
	case len(shape.Features)+len(shape.AnyFeatures) > 0 && len(shape.lacks(n)) > 0:
		f.Why = lacksFeature
		return f
	}
	var has bool
	if f.Away, has = shape.storageOf(n); !has {
		f.Why = lacksStorage
		return f
	}
	f.GPUs, f.Why = shape.GPUsOf(n)
	switch {
	case f.Why != FitsAll:
	case shape.MinCUDA > n.CUDA:
		f.Why = lacksCUDA
	case shape.DiskMiB > n.DiskMiB:
		f.Why = lacksDisk
	case shape.Share() && !n.AllowShare:
		f.Why = noSharing
	case f.GPUs.Count() < shape.Least():
		f.Why = fewGPUs
	case shape.MilliCPU > n.MilliCPU:
		f.Why = fewCores
	case shape.MemMiB > n.MemMiB:
		f.Why = littleMemory
	default:
		f.OK = true
	}
	return f
}

// Now says whether a rank may start there now, as far as that is the kind's.
func (f Fit) Now() bool { return f.OK && f.Away == "" }

// Least is how many GPUs a rank must get at least.
func (shape *Shape) Least() int {
	g := int((shape.MilliGPU + spec.WholeGPU - 1) / spec.WholeGPU)
	if shape.AllGPUs {
		return max(g, 1)
	}
	return g
}

// GPUsOf is the GPUs of a node that satisfy the constraints, and if there are
// none, the constraint that rules the last ones out.
func (shape *Shape) GPUsOf(n *spec.Node) (GPUSet, misfit) {
	var out GPUSet
	why := FitsAll
	for i, g := range n.GPUs {
		w := shape.gpuMisfit(&g)
		if w == FitsAll {
			out.Add(i)
		}
		why = max(why, w)
	}
	constrained := len(shape.Models) > 0 || shape.GPUMemMiB > 0 || shape.MinComputeCap > 0
	switch {
	case !out.Empty() || !constrained:
		return out, FitsAll
	case len(n.GPUs) == 0 && len(shape.Models) > 0:
		return out, lacksModel
	case len(n.GPUs) == 0:
		return out, fewGPUs
	}
	return out, why
}

func (shape *Shape) gpuMisfit(g *spec.GPU) misfit {
	mem := g.MemMiB
	if shape.Share() {
		mem = mem * shape.MilliGPU / spec.WholeGPU
	}
	switch {
	case len(shape.Models) > 0 && !slices.ContainsFunc(shape.Models, func(m string) bool { return models.Has(m, g.Model) }):
		return lacksModel
	case mem < shape.GPUMemMiB:
		return lacksGPUMem
	case g.ComputeCap < shape.MinComputeCap:
		return lacksComputeCap
	}
	return FitsAll
}

// SizeMilli is the GPUs of all ranks in thousandths, as far as the request says.
func (shape *Shape) SizeMilli() int64 {
	if len(shape.Groups) > 0 {
		var sum int64
		for _, g := range shape.Groups {
			sum += g.SizeMilli()
		}
		return sum
	}
	one := shape.MilliGPU
	if !shape.Share() {
		one = max(one, int64(shape.Least())*spec.WholeGPU)
	}
	return int64(shape.Ranks()) * one
}

// Text is the request in words: "2 nodes with 4 x H100, 16 cores and 64 GiB".
func (shape *Shape) Text() string {
	if shape.Shares() {
		return shape.sharedText()
	}
	if len(shape.Groups) > 0 {
		var all []string
		for _, g := range shape.Groups {
			all = append(all, words.Plural(g.Ranks(), "node")+" with "+g.rankText())
		}
		return strings.Join(all, ", and ")
	}
	switch n := shape.Ranks(); {
	case shape.Exclusive && n > 1:
		return fmt.Sprintf("%d nodes to itself with %s", n, shape.rankText())
	case shape.Exclusive:
		return "a node to itself with " + shape.rankText()
	case n > 1:
		return fmt.Sprintf("%d nodes with %s", n, shape.rankText())
	}
	return shape.rankText()
}

// rankText is the request of one rank in words.
func (shape *Shape) rankText() string {
	var b strings.Builder
	model := "GPU"
	if len(shape.GPUModels) > 0 {
		model = strings.Join(shape.GPUModels, " or ")
	}
	switch {
	case shape.AllGPUs:
		fmt.Fprintf(&b, "all %s of a node, ", model)
	case shape.MilliGPU > 0:
		fmt.Fprintf(&b, "%s x %s, ", words.Thousandths(shape.MilliGPU), model)
	}
	fmt.Fprintf(&b, "%s and ", words.Cores(shape.MilliCPU))
	if shape.AllMem {
		b.WriteString("all memory of a node, at least ")
	}
	fmt.Fprintf(&b, "%s GiB", words.GiB(shape.MemMiB))
	return b.String()
}

// Possible says whether the nodes could ever hold the shape.
func (ix *Index) Possible(in *spec.Shape) bool {
	shape := ix.Intern(in)
	if shape.Refs == 0 { // nobody else keeps it: leave no trace
		defer delete(ix.Shapes, shape.Key)
	}
	return slices.ContainsFunc(shape.Ways, ix.holds)
}

// holds says so of a shape of one partition.
func (ix *Index) holds(shape *Shape) bool {
	if len(shape.Groups) > 0 {
		return ix.Matching(shape) == shape.Ranks()
	}
	left := shape.Ranks()
	for _, kind := range ix.Order {
		if !shape.On(kind).OK {
			continue
		}
		for _, n := range kind.Nodes {
			if n.Gone || !shape.Named(n) {
				continue
			}
			if left--; left == 0 {
				return true
			}
		}
	}
	return false
}

// LossKey and Loss remember what was worked out, for as long as neither
// the mix nor the load of the node changes.
type LossKey struct {
	Node *Node
	GPUs GPUSet
}

type Loss struct {
	Mix, Load uint64
	Lost      int64
}
