package control

import (
	"fmt"
	"maps"

	"gbatch/internal/state"
)

// Drain takes a node, or one GPU of it, out of scheduling; what runs there goes
// on. An empty Reason puts it back.
type Drain struct {
	Node   string
	GPU    string // UUID, or its beginning, or index; empty: the node
	Reason string
	By     string
}

// drained answers Drain.
type drained struct {
	Was string // the reason for which the node was drained before; of a GPU it is empty
}

func (e Drain) apply(s *step) (drained, *state.Refusal) {
	old := s.nodes.get(e.Node)
	if old == nil {
		return drained{}, s.nodes.noNode(e.Node)
	}
	s.nodes.by = e.By
	n := *old
	reason := e.Reason
	if reason != "" && e.By != "" {
		reason += " (" + e.By + ")"
	}
	if e.GPU == "" {
		n.Drained = reason
		if reason == "" {
			n.Trouble = nil // the operator says that it is fit
		}
		s.nodes.set(n)
		return drained{Was: old.Drained}, nil
	}
	uuid, refusal := old.FindGPU(e.GPU)
	if refusal != nil {
		return drained{}, refusal
	}
	n.DrainedGPUs = maps.Clone(old.DrainedGPUs)
	if n.DrainedGPUs == nil {
		n.DrainedGPUs = map[string]string{}
	}
	if reason == "" {
		delete(n.DrainedGPUs, uuid)
	} else {
		n.DrainedGPUs[uuid] = reason
	}
	s.nodes.set(n)
	return drained{}, nil
}

func (e Drain) audit(a drained) Audit {
	object := "node " + e.Node
	if e.GPU != "" {
		object += " GPU " + e.GPU
	}
	return Audit{Object: object, Change: fmt.Sprintf("drained: %q -> %q", a.Was, e.Reason)}
}
