package sched

import (
	"slices"

	"gbatch/sched/mix"
	"gbatch/sched/nodes"
)

// placement is one way to choose places: all that a policy of placing decides,
// and the only thing that is asked. Each has a file of its own, place_NAME.go.
// A new one is such a file, its name in package spec, and a place in placements.
type placement struct {
	name Placement
	// exhaustive says that all nodes with room are compared, of whatever kind,
	// and not just Policy.Candidates of the kind that is worth least.
	exhaustive bool
	// cost of putting a rank of the kind at the spot; the lowest is taken.
	cost func(*round, *jobKind, spot) cost
	// share is the GPU, of those that are available, that a share of one goes to.
	share func(*round, *jobKind, *nodes.Node, nodes.GPUSet) spot
	// usable is what of a node's free GPUs a shape of the mix could use. A cost or a
	// share that asks round.lost needs it.
	usable mix.Usable
}

// placements are all there are.
var placements = []*placement{&randomPlacement, &bestFitPlacement, &fgdPlacement, &gbatchPlacement}

// placementOf is the placement of that name, nil if there is none.
func placementOf(name Placement) *placement {
	for _, p := range placements {
		if p.name == name {
			return p
		}
	}
	return nil
}

// cost orders places: a lower one is better. Candidates come in the order of
// their names within equal load, and the first of equals is kept.
type cost [6]int64

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (c cost) less(o cost) bool { return slices.Compare(c[:], o[:]) < 0 }
