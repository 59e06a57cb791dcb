package sched

import (
	"cmp"
	"math/bits"
	"slices"

	"gbatch/sched/nodes"
)

// Fragmentation is what is free and cannot be used: of the free GPUs of a node,
// the part that a job of the current mix of shapes could not take, averaged
// over the mix. A placement is the better the less it adds (Weng et al., FGD,
// USENIX ATC 2023).

// mixShape is a shape of the mix with its weight.
type mixShape struct {
	*nodes.Shape
	weight int64
	named  bool // by the policy, and so kept
}

// maxMix bounds the shapes that fragmentation is measured against where the
// policy does not name them: those submitted most.
const maxMix = 16

// mix is what fragmentation is measured against in this round.
func (r *round) mix() []mixShape {
	if r.mixed {
		return r.s.mix
	}
	r.mixed = true
	var now []mixShape
	if len(r.policy.Mix) > 0 {
		if len(r.s.mix) > 0 {
			return r.s.mix // it changes with the policy only
		}
		for i := range r.policy.Mix {
			shape := r.s.index.Intern(&r.policy.Mix[i].Shape)
			shape.Refs++
			now = append(now, mixShape{shape, r.policy.Mix[i].Weight, true})
		}
	} else {
		now = r.s.mostSubmitted()
	}
	if !slices.Equal(now, r.s.mix) {
		r.s.mix = now
		r.s.mixes++
	}
	return now
}

// mixVersion is another one for each mix.
func (r *round) mixVersion() uint64 {
	r.mix()
	return r.s.mixes
}

// mostSubmitted is the shapes with GPUs that most jobs of the queue, and of
// those that run, were submitted with. Weights are rounded down to powers of
// two, so that the mix is not another one after each job.
func (s *State) mostSubmitted() []mixShape {
	var out []mixShape
	for _, shape := range s.index.Shapes {
		if shape.Submitted > 0 && shape.MilliGPU > 0 {
			out = append(out, mixShape{Shape: shape, weight: int64(1) << (bits.Len64(uint64(shape.Submitted)) - 1)})
		}
	}
	slices.SortFunc(out, func(a, b mixShape) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.Key, b.Key))
	})
	return out[:min(len(out), maxMix)]
}

// after is a node's free resources once a rank was put on it.
type after struct {
	cpu, mem int64
	gpus     [MaxGPUs]int32 // free thousandths
}

func (a *after) fill(n *nodes.Node) {
	a.cpu, a.mem = n.CPUFree, n.MemFree
	for g := range n.GPUs {
		a.gpus[g] = 0
		if n.Usable.Has(g) {
			a.gpus[g] = WholeGPU - n.Used[g]
		}
	}
}

// lost is what the mix loses on a node by a placement: the sum over its shapes
// of weight x GPU thousandths.
func (r *round) lost(kind *jobKind, sp spot) int64 {
	n := sp.node
	mix := r.mixVersion()
	key := nodes.LossKey{Node: n, GPUs: sp.gpus}
	if l, ok := kind.Shape.Losses[key]; ok && l.Mix == mix && l.Load == n.Version {
		return l.Lost
	}
	if n.Unused.Mix != mix || n.Unused.Load != n.Version {
		r.after.fill(n)
		n.Unused = nodes.Loss{Mix: mix, Load: n.Version, Lost: r.unusable(n.Kind, &r.after)}
	}
	r.after.fill(n)
	u := kind.use(sp)
	r.after.cpu -= u.cpu
	r.after.mem -= u.mem
	for g := u.gpus.Next(0); g >= 0; g = u.gpus.Next(g + 1) {
		r.after.gpus[g] -= u.milli
	}
	lost := r.unusable(n.Kind, &r.after) - n.Unused.Lost
	if kind.Shape.Losses == nil || len(kind.Shape.Losses) > maxLost {
		kind.Shape.Losses = map[nodes.LossKey]nodes.Loss{}
	}
	kind.Shape.Losses[key] = nodes.Loss{Mix: mix, Load: n.Version, Lost: lost}
	return lost
}

// maxLost bounds what is remembered of one shape.
const maxLost = 1 << 16

// unusable is what of the free GPUs the mix cannot use.
func (r *round) unusable(nodeKind *nodes.Kind, a *after) int64 {
	gpus := a.gpus[:len(nodeKind.Sample.GPUs)]
	var free, sum int64
	for _, g := range gpus {
		free += int64(g)
	}
	for _, m := range r.mix() {
		sum += m.weight * (free - r.usable(m.Shape, nodeKind, a, gpus))
	}
	return sum
}

func (r *round) usable(shape *nodes.Shape, nodeKind *nodes.Kind, a *after, gpus []int32) int64 {
	f := shape.On(nodeKind)
	if !f.OK || shape.MilliGPU == 0 || a.cpu < shape.MilliCPU || a.mem < shape.MemOf(nodeKind.Sample.MemMiB) {
		return 0
	}
	return r.placement.usable(shape, f, a, gpus)
}

// usableOnce is the free thousandths on GPUs of which one more job could take
// part, as FGD counts them.
func usableOnce(shape *nodes.Shape, f nodes.Fit, gpus []int32) int64 {
	need := int32(min(shape.MilliGPU, WholeGPU))
	var sum int64
	count := 0
	for g, free := range gpus {
		if free >= need && f.GPUs.Has(g) {
			sum += int64(free)
			count++
		}
	}
	if count < shape.Least() {
		return 0
	}
	return sum
}

// leastLost is the place on the GPU on which a share leaves most to the mix.
func leastLost(r *round, kind *jobKind, n *nodes.Node, avail nodes.GPUSet) spot {
	var best spot
	var bestLost int64
	for g := avail.Next(0); g >= 0; g = avail.Next(g + 1) {
		sp := spot{node: n}
		sp.gpus.Add(g)
		if l := r.lost(kind, sp); best.node == nil || l < bestLost {
			best, bestLost = sp, l
		}
	}
	return best
}
