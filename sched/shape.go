package sched

import (
	"fmt"
	"slices"
	"strings"

	"gbatch/sched/spec"
	"gbatch/sched/words"
)

// shape is an interned Shape: equal requests share one.
type shape struct {
	spec.Shape
	key    string // equal for equal requests
	bounds string // the same, without the amounts of a rank
	nameRules
	models []string // Shape.GPUModels in lower case

	refs      int   // classes and running jobs
	submitted int64 // jobs that wait or run with it, for the mix
	fits      map[*nodeKind]fit
	rest      *shape                // of the rank with fewer GPUs, nil if there is none
	lost      map[lostKey]lostValue // see round.lost
}

// fit is whether nodes of a kind can ever hold a rank of a shape, when nothing
// else is on them and none of their GPUs is drained.
type fit struct {
	ok   bool
	gpus gpuSet // those that will do
	why  misfit // what is missing first, where not ok
}

// misfit is what a node lacks for ever, in the order in which it is told.
type misfit uint8

const (
	fitsAll misfit = iota
	wrongCluster
	wrongName
	lacksFeature
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

// intern finds or makes the shape for a request.
func (ix *index) intern(in *spec.Shape) *shape {
	if in == ix.lastIn && ix.lastShape != nil && ix.shapes[ix.lastShape.key] == ix.lastShape {
		return ix.lastShape
	}
	n, bounds, key := in.Canonical()
	out := ix.shapes[key]
	if out == nil {
		models := n.GPUModels
		n.GPUModels, n.Features = slices.Clone(in.GPUModels), slices.Clone(in.Features)
		n.NodeNames, n.ExcludeNodes = slices.Clone(in.NodeNames), slices.Clone(in.ExcludeNodes)
		out = &shape{Shape: n, key: key, bounds: bounds, nameRules: newNameRules(in), models: models, fits: map[*nodeKind]fit{}}
		if n.RestMilliGPU > 0 {
			rest := *out
			rest.MilliGPU, rest.RestMilliGPU, rest.fits = n.RestMilliGPU, 0, map[*nodeKind]fit{}
			out.rest = &rest
		}
		ix.shapes[key] = out
	}
	ix.lastIn, ix.lastShape = in, out
	return out
}

func (ix *index) unref(x *shape) {
	x.refs--
	if x.refs == 0 {
		delete(ix.shapes, x.key)
	}
}

// share says that a rank takes part of one GPU only.
func (x *shape) share() bool { return x.MilliGPU > 0 && x.MilliGPU < spec.WholeGPU }

// whole GPUs of a rank.
func (x *shape) wholeGPUs() int { return int(x.MilliGPU / spec.WholeGPU) }

// on is whether nodes of the kind can ever hold a rank.
func (x *shape) on(k *nodeKind) fit {
	f, ok := x.fits[k]
	if !ok {
		f = x.match(k)
		x.fits[k] = f
	}
	return f
}

func (x *shape) match(k *nodeKind) fit {
	n := k.sample
	var f fit
	switch {
	case x.Cluster != 0 && x.Cluster != n.Cluster:
		f.why = wrongCluster
		return f
	case len(x.Features)+len(x.AnyFeatures) > 0 && len(x.lacks(n)) > 0:
		f.why = lacksFeature
		return f
	}
	f.gpus, f.why = x.gpusOf(n)
	switch {
	case f.why != fitsAll:
	case x.MinCUDA > n.CUDA:
		f.why = lacksCUDA
	case x.DiskMiB > n.DiskMiB:
		f.why = lacksDisk
	case x.share() && !n.AllowShare:
		f.why = noSharing
	case f.gpus.count() < x.least():
		f.why = fewGPUs
	case x.MilliCPU > n.MilliCPU:
		f.why = fewCores
	case x.MemMiB > n.MemMiB:
		f.why = littleMemory
	default:
		f.ok = true
	}
	return f
}

// least is how many GPUs a rank must get at least.
func (x *shape) least() int {
	g := int((x.MilliGPU + spec.WholeGPU - 1) / spec.WholeGPU)
	if x.AllGPUs {
		return max(g, 1)
	}
	return g
}

// gpusOf is the GPUs of a node that satisfy the constraints, and if there are
// none, the constraint that rules the last ones out.
func (x *shape) gpusOf(n *spec.Node) (gpuSet, misfit) {
	var out gpuSet
	why := fitsAll
	for i, g := range n.GPUs {
		w := x.gpuMisfit(&g)
		if w == fitsAll {
			out.add(i)
		}
		why = max(why, w)
	}
	constrained := len(x.models) > 0 || x.GPUMemMiB > 0 || x.MinComputeCap > 0
	switch {
	case !out.empty() || !constrained:
		return out, fitsAll
	case len(n.GPUs) == 0 && len(x.models) > 0:
		return out, lacksModel
	case len(n.GPUs) == 0:
		return out, fewGPUs
	}
	return out, why
}

func (x *shape) gpuMisfit(g *spec.GPU) misfit {
	mem := g.MemMiB
	if x.share() {
		mem = mem * x.MilliGPU / spec.WholeGPU
	}
	model := strings.ToLower(g.Model)
	switch {
	case len(x.models) > 0 && !slices.ContainsFunc(x.models, func(m string) bool { return strings.Contains(model, m) }):
		return lacksModel
	case mem < x.GPUMemMiB:
		return lacksGPUMem
	case g.ComputeCap < x.MinComputeCap:
		return lacksComputeCap
	}
	return fitsAll
}

// sizeMilli is the GPUs of all ranks in thousandths, as far as the request says.
func (x *shape) sizeMilli() int64 {
	return int64(x.Ranks()) * max(x.MilliGPU, int64(x.least())*spec.WholeGPU*int64(boolInt(!x.share())))
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// text is the request in words: "2 nodes with 4 x H100, 16 cores and 64 GiB".
func (x *shape) text() string {
	var b strings.Builder
	if n := x.Ranks(); n > 1 {
		fmt.Fprintf(&b, "%d nodes with ", n)
	}
	return b.String() + x.rankText()
}

// rankText is the request of one rank in words.
func (x *shape) rankText() string {
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

// possible says whether the nodes could ever hold the shape.
func (ix *index) possible(in *spec.Shape) bool {
	x := ix.intern(in)
	if x.refs == 0 { // nobody else keeps it: leave no trace
		defer delete(ix.shapes, x.key)
	}
	left := x.Ranks()
	for _, k := range ix.order {
		if !x.on(k).ok {
			continue
		}
		for _, n := range k.nodes {
			if n.gone || !x.named(n) {
				continue
			}
			if left--; left == 0 {
				return true
			}
		}
	}
	return false
}

// lostKey and lostValue remember what was worked out, for as long as neither
// the mix nor the load of the node changes.
type lostKey struct {
	node *node
	gpus gpuSet
}

type lostValue struct {
	mix, load uint64
	lost      int64
}
