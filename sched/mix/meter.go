package mix

import (
	"gbatch/sched/nodes"
	"gbatch/sched/spec"
)

// Meter says in one round what a placement loses.
type Meter struct {
	Mix    *Mix
	Index  *nodes.Index
	Policy []spec.MixShape // the mix that the policy names; empty: of the jobs that there are
	Usable Usable          // of the placement

	renewed bool // Mix is that of this round
	free    Free // scratch
}

// Usable is how much of what is free on a node's GPUs (in thousandths, by
// position) a shape of the mix could use.
type Usable func(shape *nodes.Shape, f nodes.Fit, free *Free, gpus []int32) int64

// Free is a node's free resources once a rank was put on it.
type Free struct {
	cpu, mem int64
	gpus     [spec.MaxGPUs]int32 // free thousandths
}

func (a *Free) fill(n *nodes.Node) {
	a.cpu, a.mem = n.CPUFree, n.MemFree
	for g := range n.GPUs {
		a.gpus[g] = 0
		if n.Usable.Has(g) {
			a.gpus[g] = spec.WholeGPU - n.Used[g]
		}
	}
}

// Rank is a rank of a shape on a node, and what it would take there.
type Rank struct {
	Shape *nodes.Shape
	Node  *nodes.Node
	GPUs  nodes.GPUSet
	CPU   int64 // thousandths
	Mem   int64 // MiB
	Milli int32 // of each of the GPUs
}

// now is the mix of this round.
func (m *Meter) now() *Mix {
	if !m.renewed {
		m.renewed = true
		m.Mix.renew(m.Index, m.Policy)
	}
	return m.Mix
}

// Lost is what the mix loses on a node by a rank there: the sum over its shapes
// of weight x GPU thousandths.
func (m *Meter) Lost(r Rank) int64 {
	n, version := r.Node, m.now().version
	key := nodes.LossKey{Node: n, GPUs: r.GPUs}
	if l, ok := r.Shape.Losses[key]; ok && l.Mix == version && l.Load == n.Version {
		return l.Lost
	}
	if n.Unused.Mix != version || n.Unused.Load != n.Version {
		m.free.fill(n)
		n.Unused = nodes.Loss{Mix: version, Load: n.Version, Lost: m.unusable(n.Kind)}
	}
	m.free.fill(n)
	m.free.cpu -= r.CPU
	m.free.mem -= r.Mem
	for g := r.GPUs.Next(0); g >= 0; g = r.GPUs.Next(g + 1) {
		m.free.gpus[g] -= r.Milli
	}
	lost := m.unusable(n.Kind) - n.Unused.Lost
	if r.Shape.Losses == nil || len(r.Shape.Losses) > maxLost {
		r.Shape.Losses = map[nodes.LossKey]nodes.Loss{}
	}
	r.Shape.Losses[key] = nodes.Loss{Mix: version, Load: n.Version, Lost: lost}
	return lost
}

// maxLost bounds what is remembered of one shape.
const maxLost = 1 << 16

// unusable is what of the GPUs that are free the mix cannot use.
func (m *Meter) unusable(kind *nodes.Kind) int64 {
	gpus := m.free.gpus[:len(kind.Sample.GPUs)]
	var free, sum int64
	for _, g := range gpus {
		free += int64(g)
	}
	for _, w := range m.Mix.shapes {
		sum += w.weight * (free - m.usable(w.Shape, kind, gpus))
	}
	return sum
}

func (m *Meter) usable(shape *nodes.Shape, kind *nodes.Kind, gpus []int32) int64 {
	f := shape.On(kind)
	if !f.OK || shape.MilliGPU == 0 || m.free.cpu < shape.MilliCPU || m.free.mem < shape.MemOf(kind.Sample.MemMiB) {
		return 0
	}
	return m.Usable(shape, f, &m.free, gpus)
}
