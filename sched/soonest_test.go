package sched

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/sched/nodes"
	"gbatch/sched/timeline"
)

// earliestOfAll is earliestWay by asking every node.
func earliestOfAll(r *round, kind *jobKind, from Time) (Time, []spot) {
	var list []candidate
	for _, nodeKind := range r.s.index.Order {
		for _, n := range nodeKind.Nodes {
			if n.TakesJobs() && kind.Shape.On(nodeKind).Now() && kind.Shape.Named(n) {
				list = append(list, candidate{n, r.calendar.earliestOn(n, kind, from)})
			}
		}
	}
	for at := from; ; {
		enough := nth(list, kind.Shape.Ranks())
		if enough >= Never {
			return 0, nil
		}
		if enough == at {
			return at, r.spotsAt(kind, list, at)
		}
		at = enough
		for i, c := range list {
			if c.at < at {
				list[i].at = r.calendar.earliestOn(c.node, kind, at)
			}
		}
	}
}

// TestSoonestAsksFewNodes: a search that asks nodes in the order of what ends on them
// finds what one finds that asks them all, also after jobs were told to end sooner and
// while much is planned.
func TestSoonestAsksFewNodes(t *testing.T) {
	for seed := range uint64(40) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		l := load{jobs: 200, nodes: 12, shapes: 40, users: 5}
		s := l.state(t, true)
		for i, name := range []string{"n0003", "n0007"} {
			n, _ := s.Node(name)
			n.State = []NodeState{Drained, Up}[i]
			n.GPUs = slices.Clone(n.GPUs)
			n.GPUs[i].Drained = true
			if err := s.SetNode(n); err != nil {
				t.Fatal(err)
			}
		}
		r := newRound(Input{Now: now0, State: s})
		for i := range 60 {
			j := l.job(rnd.IntN(200))
			switch j.Shape.Nodes, i = rnd.IntN(4), i%8; i {
			case 0:
				j.Shape.Exclusive = true
			case 1:
				j.Shape.MilliGPU = 0
			case 2:
				j.Shape.AllGPUs = true
			}
			kind := kindOfJob(s, j)
			from := now0 + Time(rnd.IntN(3))*Hour
			at, spots := r.earliestWay(kind, from)
			wantAt, want := earliestOfAll(r, kind, from)
			if diff := cmp.Diff(placesOf(wantAt, want), placesOf(at, spots)); diff != "" {
				t.Fatalf("seed %d, search %d for %s (-all +few):\n%s", seed, i, kind.Shape.Text(), diff)
			}
			if spots != nil && rnd.IntN(3) > 0 {
				for _, sp := range spots {
					r.calendar.timeline(sp.node).Book(timeline.Booking{Start: at, End: at + kind.predicted, Use: kind.use(sp), Job: j.ID})
				}
			}
			if n := r.s.index.Sorted[rnd.IntN(12)]; len(n.Ranks) > 0 && rnd.IntN(4) == 0 {
				r.calendar.halt(n.Ranks[rnd.IntN(len(n.Ranks))].Run)
			}
		}
		r.close()
	}
}

func kindOfJob(s *State, j Job) *jobKind {
	j.ID += 1 << 50
	if err := s.Enqueue(j); err != nil {
		panic(err)
	}
	kind := s.waiting[j.ID].class.kind
	return kind.ways[0]
}

func placesOf(at Time, spots []spot) (list []string) {
	for _, sp := range spots {
		list = append(list, fmt.Sprintf("%d on %s: %v", at-now0, sp.node.Name, gpusOf(sp.gpus)))
	}
	return list
}

func gpusOf(set nodes.GPUSet) (list []int) {
	for g := set.Next(0); g >= 0; g = set.Next(g + 1) {
		list = append(list, g)
	}
	return list
}

// TestOwnPlaceIsNotInTheWay: where a job is planned, the explanation says the time of
// its plan, and not when the node has room beside that.
func TestOwnPlaceIsNotInTheWay(t *testing.T) {
	l := load{jobs: 1, nodes: 1, shapes: 1, users: 1}
	s := l.state(t, true)
	in := Input{Now: now0, State: s}
	j := l.job(0)
	j.ID, j.Shape = 7, &Shape{MilliGPU: 8000, MilliCPU: 1000, MemMiB: 1024}
	if err := s.Enqueue(j); err != nil {
		t.Fatal(err)
	}
	at := Decide(in).Reservations[0].At
	x := Explain(in, j.ID)
	if len(x.Nodes) != 1 || x.Nodes[0].At != at {
		t.Errorf("planned for %d, and the node has room at %+v", at, x.Nodes)
	}
}
