package sched

import (
	"cmp"
	"math/bits"
	"slices"
)

// Fragmentation is what is free and cannot be used: of the free GPUs of a node,
// the part that a job of the current mix of shapes could not take, averaged
// over the mix. A placement is the better the less it adds (Weng et al., FGD,
// USENIX ATC 2023).

// mixShape is a shape of the mix with its weight.
type mixShape struct {
	*shape
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
			x := r.s.index.intern(&r.policy.Mix[i].Shape)
			x.refs++
			now = append(now, mixShape{x, r.policy.Mix[i].Weight, true})
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
	for _, x := range s.index.shapes {
		if x.submitted > 0 && x.MilliGPU > 0 {
			out = append(out, mixShape{shape: x, weight: int64(1) << (bits.Len64(uint64(x.submitted)) - 1)})
		}
	}
	slices.SortFunc(out, func(a, b mixShape) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.key, b.key))
	})
	return out[:min(len(out), maxMix)]
}

// after is a node's free resources once a rank was put on it.
type after struct {
	cpu, mem int64
	gpus     [MaxGPUs]int32 // free thousandths
}

func (n *node) fill(a *after) {
	a.cpu, a.mem = n.cpuFree, n.memFree
	for g := range n.GPUs {
		a.gpus[g] = 0
		if n.usable.has(g) {
			a.gpus[g] = WholeGPU - n.used[g]
		}
	}
}

// lost is what the mix loses on a node by a placement: the sum over its shapes
// of weight x GPU thousandths.
func (r *round) lost(k *jobKind, sp spot) int64 {
	n := sp.node
	mix := r.mixVersion()
	key := lostKey{n, sp.gpus}
	if l, ok := k.shape.lost[key]; ok && l.mix == mix && l.load == n.version {
		return l.lost
	}
	if n.unused.mix != mix || n.unused.load != n.version {
		n.fill(&r.after)
		n.unused = lostValue{mix, n.version, r.unusable(n.kind, &r.after)}
	}
	n.fill(&r.after)
	u := k.use(sp)
	r.after.cpu -= u.cpu
	r.after.mem -= u.mem
	for g := u.gpus.next(0); g >= 0; g = u.gpus.next(g + 1) {
		r.after.gpus[g] -= u.milli
	}
	lost := r.unusable(n.kind, &r.after) - n.unused.lost
	if k.shape.lost == nil || len(k.shape.lost) > maxLost {
		k.shape.lost = map[lostKey]lostValue{}
	}
	k.shape.lost[key] = lostValue{mix, n.version, lost}
	return lost
}

// maxLost bounds what is remembered of one shape.
const maxLost = 1 << 16

// unusable is what of the free GPUs the mix cannot use.
func (r *round) unusable(k *nodeKind, a *after) int64 {
	gpus := a.gpus[:len(k.sample.GPUs)]
	var free, sum int64
	for _, g := range gpus {
		free += int64(g)
	}
	for _, m := range r.mix() {
		sum += m.weight * (free - r.usable(m.shape, k, a, gpus))
	}
	return sum
}

func (r *round) usable(x *shape, k *nodeKind, a *after, gpus []int32) int64 {
	f := x.on(k)
	if !f.ok || x.MilliGPU == 0 || a.cpu < x.MilliCPU || a.mem < x.MemMiB {
		return 0
	}
	return r.placement.usable(x, f, a, gpus)
}

// usableOnce is the free thousandths on GPUs of which one more job could take
// part, as FGD counts them.
func usableOnce(x *shape, f fit, gpus []int32) int64 {
	need := int32(min(x.MilliGPU, WholeGPU))
	var sum int64
	count := 0
	for g, free := range gpus {
		if free >= need && f.gpus.has(g) {
			sum += int64(free)
			count++
		}
	}
	if count < x.least() {
		return 0
	}
	return sum
}

// leastLost is the place on the GPU on which a share leaves most to the mix.
func leastLost(r *round, k *jobKind, n *node, avail gpuSet) spot {
	var best spot
	var bestLost int64
	for g := avail.next(0); g >= 0; g = avail.next(g + 1) {
		sp := spot{node: n}
		sp.gpus.add(g)
		if l := r.lost(k, sp); best.node == nil || l < bestLost {
			best, bestLost = sp, l
		}
	}
	return best
}
