package importer

import (
	"fmt"
	"strings"

	"gbatch/internal/job"
)

// addAnyFeature turns a constraint that gbatch has no word for into features,
// as backend=aws, of which the node must have one.
func addAnyFeature(d *decoder, n *node, g *job.Gbatch, any []string) {
	d.becomes(fmt.Sprintf("gbatch.anyFeatures[%d]", len(g.AnyFeatures)), n)
	g.AnyFeatures = append(g.AnyFeatures, any)
	what := "the feature "
	if len(any) > 1 {
		what = "one of the features "
	}
	d.note(n, "only nodes that the site gave "+what+strings.Join(any, ", "))
}
