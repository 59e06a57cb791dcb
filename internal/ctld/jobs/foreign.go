package jobs

import (
	"fmt"
	"slices"
	"strings"

	"gbatch/internal/job"
	"gbatch/internal/state"
)

// dropForeign takes constraints out of a job that was written for another system
// if no node here has the attribute that they are about: where no node has a
// backend=, a job that wants backend=aws means one of many clouds, and this
// site is none of them. Where nodes have it the constraint stays.
func dropForeign(v *state.View, spec *job.Spec) (notes []job.Note) {
	g := spec.Gbatch
	if g == nil || g.Source == "" || v.Nodes.Len() == 0 {
		return nil
	}
	known := map[string]bool{}
	for n := range v.Nodes.All() {
		for _, f := range n.Inventory.Features {
			key, _, _ := strings.Cut(f, "=")
			known[key] = true
		}
	}
	foreign := func(any []string) bool {
		return !slices.ContainsFunc(any, func(f string) bool {
			key, _, pair := strings.Cut(f, "=")
			return !pair || known[key]
		})
	}
	kept := slices.DeleteFunc(slices.Clone(g.AnyFeatures), foreign)
	for i, any := range g.AnyFeatures {
		if foreign(any) {
			key, _, _ := strings.Cut(any[0], "=")
			notes = append(notes, job.Note{Path: fmt.Sprintf("gbatch.anyFeatures[%d]", i),
				Message: fmt.Sprintf("%s is not asked of nodes: none here has a feature %s=", strings.Join(any, " or "), key)})
		}
	}
	if g.AnyFeatures = kept; len(kept) == 0 {
		g.AnyFeatures = nil
	}
	return notes
}
