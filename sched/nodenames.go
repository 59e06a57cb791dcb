package sched

import (
	"fmt"
	"slices"
	"strings"

	"gbatch/sched/spec"
	"gbatch/sched/words"
)

// nameRules are the nodes that a shape allows by name, folded.
type nameRules struct {
	only  map[string]bool // nil: any
	never map[string]bool
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
	r.only, r.never = set(s.NodeNames), set(s.ExcludeNodes)
	if s.Node != "" {
		if r.only == nil || r.only[spec.Fold(s.Node)] {
			r.only = map[string]bool{spec.Fold(s.Node): true}
		} else {
			r.only = map[string]bool{"": true} // two wishes that no node fulfils
		}
	}
	return r
}

// choosy says that not every node will do by its name.
func (r *nameRules) choosy() bool { return r.only != nil || r.never != nil }

// named says whether the node is one that the shape allows by name.
func (r *nameRules) named(n *node) bool {
	return (r.only == nil || r.only[n.folded]) && !r.never[n.folded]
}

// namesText says why no node will do by its name.
func (x *shape) namesText() string {
	switch {
	case x.Node != "" && len(x.NodeNames)+len(x.ExcludeNodes) == 0:
		return fmt.Sprintf("no node is called %q", x.Node)
	case x.only == nil:
		return fmt.Sprintf("all nodes are excluded (%s)", strings.Join(x.ExcludeNodes, ", "))
	case x.Node != "":
		return fmt.Sprintf("no node is called %q and allowed by the other names given", x.Node)
	case len(x.ExcludeNodes) > 0:
		return fmt.Sprintf("no node is called %s and not excluded", words.OrList(x.NodeNames))
	}
	return "no node is called " + words.OrList(x.NodeNames)
}

// lacks is the features that a node would need more: all of a list, and of each
// of the others one.
func (x *shape) lacks(n *spec.Node) []string {
	var out []string
	for _, f := range x.Features {
		if !slices.Contains(n.Features, f) {
			out = append(out, fmt.Sprintf("%q", f))
		}
	}
	for _, any := range x.AnyFeatures {
		if !slices.ContainsFunc(any, func(f string) bool { return slices.Contains(n.Features, f) }) {
			out = append(out, words.OrList(any))
		}
	}
	return out
}
