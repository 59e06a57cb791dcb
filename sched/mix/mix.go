// Package mix measures fragmentation: what is free and cannot be used. Of the
// free GPUs of a node it is the part that a job of the present mix of shapes could
// not take, averaged over the mix; a placement is the better the less it adds
// (Weng et al., FGD, USENIX ATC 2023). The package chooses no place. A Mix belongs
// to the State of the scheduler, a Meter to one round.
package mix

import (
	"cmp"
	"math/bits"
	"slices"

	"gbatch/sched/nodes"
	"gbatch/sched/spec"
)

// Mix is the shapes that fragmentation is measured against. The zero value is
// empty.
type Mix struct {
	shapes  []weighed // of the last round
	version uint64    // another one for each mix
}

// weighed is a shape of the mix with its weight.
type weighed struct {
	*nodes.Shape
	weight int64
	named  bool // by the policy, and so kept
}

// most bounds the shapes that fragmentation is measured against where the policy
// does not name them: those submitted most.
const most = 16

// renew makes the mix that of the policy, or else of the jobs that there are.
func (m *Mix) renew(index *nodes.Index, policy []spec.MixShape) {
	var now []weighed
	if len(policy) > 0 {
		if len(m.shapes) > 0 {
			return // it changes with the policy only
		}
		for i := range policy {
			shape := index.Intern(&policy[i].Shape)
			shape.Refs++
			now = append(now, weighed{shape, policy[i].Weight, true})
		}
	} else {
		now = mostSubmitted(index)
	}
	if !slices.Equal(now, m.shapes) {
		m.shapes = now
		m.version++
	}
}

// Drop forgets the mix, as the policy is another one.
func (m *Mix) Drop(index *nodes.Index) {
	for _, w := range m.shapes {
		if w.named {
			index.Unref(w.Shape)
		}
	}
	m.shapes = nil
}

// mostSubmitted is the shapes with GPUs that most jobs of the queue, and of
// those that run, were submitted with. Weights are rounded down to powers of
// two, so that the mix is not another one after each job.
func mostSubmitted(index *nodes.Index) []weighed {
	var out []weighed
	for _, shape := range index.Shapes {
		for _, one := range shape.Kinds() {
			if shape.Submitted > 0 && one.MilliGPU > 0 {
				out = append(out, weighed{Shape: one, weight: int64(1) << (bits.Len64(uint64(shape.Submitted)) - 1)})
			}
		}
	}
	slices.SortFunc(out, func(a, b weighed) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.Key, b.Key))
	})
	return out[:min(len(out), most)]
}
