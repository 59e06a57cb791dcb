package nodes

import (
	"fmt"
	"slices"
	"strings"

	"gbatch/sched/spec"
	"gbatch/sched/words"
)

// nameRules are the nodes that a shape allows by name, folded.
type nameRules struct {
	Only  map[string]bool // nil: any
	Never map[string]bool
}

func newNameRules(s *spec.Shape) nameRules {
	var r nameRules
	set := func(names []string) map[string]bool {
		if len(names) == 0 {
			return nil
		}
		out := map[string]bool{}
		for _, n := range names {
			out[spec.Fold(n)] = true
		}
		return out
	}
	r.Only, r.Never = set(s.NodeNames), set(s.ExcludeNodes)
	if s.Node != "" {
		if r.Only == nil || r.Only[spec.Fold(s.Node)] {
			r.Only = map[string]bool{spec.Fold(s.Node): true}
		} else {
			r.Only = map[string]bool{"": true} // two wishes that no node fulfils
		}
	}
	return r
}

// choosy says that not every node will do by its name.
func (r *nameRules) choosy() bool { return r.Only != nil || r.Never != nil }

// Named says whether the node is one that the shape allows by name.
func (r *nameRules) Named(n *Node) bool {
	return (r.Only == nil || r.Only[n.Folded]) && !r.Never[n.Folded]
}

// namesText says why no node will do by its name.
func (shape *Shape) namesText() string {
	switch {
	case shape.Node != "" && len(shape.NodeNames)+len(shape.ExcludeNodes) == 0:
		return fmt.Sprintf("no node is called %q", shape.Node)
	case shape.Only == nil:
		return fmt.Sprintf("all nodes are excluded (%s)", strings.Join(shape.ExcludeNodes, ", "))
	case shape.Node != "":
		return fmt.Sprintf("no node is called %q and allowed by the other names given", shape.Node)
	case len(shape.ExcludeNodes) > 0:
		return fmt.Sprintf("no node is called %s and not excluded", words.OrList(shape.NodeNames))
	}
	return "no node is called " + words.OrList(shape.NodeNames)
}

// lacks is the features that a node would need more: all of a list, and of each
// of the others one.
func (shape *Shape) lacks(n *spec.Node) []string {
	var out []string
	for _, f := range shape.Features {
		if !slices.Contains(n.Features, f) {
			out = append(out, fmt.Sprintf("%q", f))
		}
	}
	for _, any := range shape.AnyFeatures {
		if !slices.ContainsFunc(any, func(f string) bool { return slices.Contains(n.Features, f) }) {
			out = append(out, words.OrList(any))
		}
	}
	return out
}
