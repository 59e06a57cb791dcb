package timeline

import (
	"cmp"
	"slices"

	"gbatch/sched/nodes"
	"gbatch/sched/spec"
)

// Sums are what is free on several nodes together, moment by moment.
type Sums struct{ changes []change }

// change is by how much there is more from a moment on.
type change struct {
	at             spec.Time
	gpus, cpu, mem int64
}

// Add adds a node.
func (s *Sums) Add(l *Line) {
	var was change
	for i := range l.Points {
		p := &l.Points[i]
		now := change{p.At, int64(p.Free.Count()), max(p.cpu, 0), max(p.mem, 0)}
		s.changes = append(s.changes, change{p.At, now.gpus - was.gpus, now.cpu - was.cpu, now.mem - was.mem})
		was = now
	}
}

// At adds a moment at which something else changes.
func (s *Sums) At(t spec.Time) { s.changes = append(s.changes, change{at: t}) }

// Enough are the moments, from the one given, at which there is as much in all as the ranks of
// a shape take together. At others they have no room, wherever it is.
func (s *Sums) Enough(shape *nodes.Shape, from spec.Time) (moments []spec.Time) {
	slices.SortFunc(s.changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	gpus := shape.SizeMilli() / spec.WholeGPU
	cpu, mem := shape.Total(func(g *spec.Shape) int64 { return g.MilliCPU }), shape.Total(func(g *spec.Shape) int64 { return g.MemMiB })
	var sum change
	see := func(t spec.Time) {
		if sum.gpus >= gpus && sum.cpu >= cpu && sum.mem >= mem && t < spec.Never {
			moments = append(moments, t)
		}
	}
	seen := false
	for i, c := range s.changes {
		if c.at > from && !seen {
			see(from)
			seen = true
		}
		sum.gpus, sum.cpu, sum.mem = sum.gpus+c.gpus, sum.cpu+c.cpu, sum.mem+c.mem
		if last := i == len(s.changes)-1 || s.changes[i+1].at > c.at; last && c.at > from {
			see(c.at)
		}
	}
	if !seen {
		see(from)
	}
	return moments
}
