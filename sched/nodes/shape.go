package nodes

import (
	"fmt"
	"slices"
	"strings"

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
	Losses    map[LossKey]Loss // see round.lost
}

// Fit is whether nodes of a kind can ever hold a rank of a shape, when nothing
// else is on them and none of their GPUs is drained.
type Fit struct {
	OK   bool
	GPUs GPUSet // those that will do
	Why  Misfit // what is missing first, where not ok
}

// Misfit is what a node lacks for ever, in the order in which it is told.
type Misfit uint8

const (
	FitsAll Misfit = iota
	WrongCluster
	WrongName
	LacksFeature
	LacksModel
	LacksGPUMem
	LacksComputeCap
	LacksCUDA
	LacksDisk
	NoSharing
	FewGPUs
	FewCores
	LittleMemory
)

// Intern finds or makes the shape for a request.
func (ix *Index) Intern(in *spec.Shape) *Shape {
	if in == ix.lastIn && ix.lastShape != nil && ix.Shapes[ix.lastShape.Key] == ix.lastShape {
		return ix.lastShape
	}
	n, bounds, key := in.Canonical()
	out := ix.Shapes[key]
	if out == nil {
		models := n.GPUModels
		n.GPUModels, n.Features = slices.Clone(in.GPUModels), slices.Clone(in.Features)
		n.NodeNames, n.ExcludeNodes = slices.Clone(in.NodeNames), slices.Clone(in.ExcludeNodes)
		out = &Shape{Shape: n, Key: key, Bounds: bounds, nameRules: newNameRules(in), Models: models, fits: map[*Kind]Fit{}}
		if n.RestMilliGPU > 0 {
			rest := *out
			rest.MilliGPU, rest.RestMilliGPU, rest.fits = n.RestMilliGPU, 0, map[*Kind]Fit{}
			out.Rest = &rest
		}
		ix.Shapes[key] = out
	}
	ix.lastIn, ix.lastShape = in, out
	return out
}

func (ix *Index) Unref(x *Shape) {
	x.Refs--
	if x.Refs == 0 {
		delete(ix.Shapes, x.Key)
	}
}

// Share says that a rank takes part of one GPU only.
func (x *Shape) Share() bool { return x.MilliGPU > 0 && x.MilliGPU < spec.WholeGPU }

// whole GPUs of a rank.
func (x *Shape) WholeGPUs() int { return int(x.MilliGPU / spec.WholeGPU) }

// On is whether nodes of the kind can ever hold a rank.
func (x *Shape) On(k *Kind) Fit {
	f, ok := x.fits[k]
	if !ok {
		f = x.match(k)
		x.fits[k] = f
	}
	return f
}

func (x *Shape) match(k *Kind) Fit {
	n := k.Sample
	var f Fit
	switch {
	case x.Cluster != 0 && x.Cluster != n.Cluster:
		f.Why = WrongCluster
		return f
	case len(x.Features)+len(x.AnyFeatures) > 0 && len(x.Lacks(n)) > 0:
		f.Why = LacksFeature
		return f
	}
	f.GPUs, f.Why = x.GPUsOf(n)
	switch {
	case f.Why != FitsAll:
	case x.MinCUDA > n.CUDA:
		f.Why = LacksCUDA
	case x.DiskMiB > n.DiskMiB:
		f.Why = LacksDisk
	case x.Share() && !n.AllowShare:
		f.Why = NoSharing
	case f.GPUs.Count() < x.Least():
		f.Why = FewGPUs
	case x.MilliCPU > n.MilliCPU:
		f.Why = FewCores
	case x.MemMiB > n.MemMiB:
		f.Why = LittleMemory
	default:
		f.OK = true
	}
	return f
}

// Least is how many GPUs a rank must get at least.
func (x *Shape) Least() int {
	g := int((x.MilliGPU + spec.WholeGPU - 1) / spec.WholeGPU)
	if x.AllGPUs {
		return max(g, 1)
	}
	return g
}

// GPUsOf is the GPUs of a node that satisfy the constraints, and if there are
// none, the constraint that rules the last ones out.
func (x *Shape) GPUsOf(n *spec.Node) (GPUSet, Misfit) {
	var out GPUSet
	why := FitsAll
	for i, g := range n.GPUs {
		w := x.gpuMisfit(&g)
		if w == FitsAll {
			out.Add(i)
		}
		why = max(why, w)
	}
	constrained := len(x.Models) > 0 || x.GPUMemMiB > 0 || x.MinComputeCap > 0
	switch {
	case !out.Empty() || !constrained:
		return out, FitsAll
	case len(n.GPUs) == 0 && len(x.Models) > 0:
		return out, LacksModel
	case len(n.GPUs) == 0:
		return out, FewGPUs
	}
	return out, why
}

func (x *Shape) gpuMisfit(g *spec.GPU) Misfit {
	mem := g.MemMiB
	if x.Share() {
		mem = mem * x.MilliGPU / spec.WholeGPU
	}
	model := strings.ToLower(g.Model)
	switch {
	case len(x.Models) > 0 && !slices.ContainsFunc(x.Models, func(m string) bool { return strings.Contains(model, m) }):
		return LacksModel
	case mem < x.GPUMemMiB:
		return LacksGPUMem
	case g.ComputeCap < x.MinComputeCap:
		return LacksComputeCap
	}
	return FitsAll
}

// SizeMilli is the GPUs of all ranks in thousandths, as far as the request says.
func (x *Shape) SizeMilli() int64 {
	one := x.MilliGPU
	if !x.Share() {
		one = max(one, int64(x.Least())*spec.WholeGPU)
	}
	return int64(x.Ranks()) * one
}

// Text is the request in words: "2 nodes with 4 x H100, 16 cores and 64 GiB".
func (x *Shape) Text() string {
	var b strings.Builder
	if n := x.Ranks(); n > 1 {
		fmt.Fprintf(&b, "%d nodes with ", n)
	}
	return b.String() + x.RankText()
}

// RankText is the request of one rank in words.
func (x *Shape) RankText() string {
	var b strings.Builder
	model := "GPU"
	if len(x.GPUModels) > 0 {
		model = strings.Join(x.GPUModels, " or ")
	}
	switch {
	case x.AllGPUs:
		fmt.Fprintf(&b, "all %s of a node, ", model)
	case x.MilliGPU > 0:
		fmt.Fprintf(&b, "%s x %s, ", words.Thousandths(x.MilliGPU), model)
	}
	fmt.Fprintf(&b, "%s cores and %s GiB", words.Thousandths(x.MilliCPU), words.Thousandths(x.MemMiB*1000/1024))
	return b.String()
}

// Possible says whether the nodes could ever hold the shape.
func (ix *Index) Possible(in *spec.Shape) bool {
	x := ix.Intern(in)
	if x.Refs == 0 { // nobody else keeps it: leave no trace
		defer delete(ix.Shapes, x.Key)
	}
	left := x.Ranks()
	for _, k := range ix.Order {
		if !x.On(k).OK {
			continue
		}
		for _, n := range k.Nodes {
			if n.Gone || !x.Named(n) {
				continue
			}
			if left--; left == 0 {
				return true
			}
		}
	}
	return false
}

// LossKey and lostValue remember what was worked out, for as long as neither
// the mix nor the load of the node changes.
type LossKey struct {
	Node *Node
	GPUs GPUSet
}

type Loss struct {
	Mix, Load uint64
	Lost      int64
}
