package foreign

import (
	"fmt"
	"strings"

	"gbatch/internal/document"
	"gbatch/internal/job"
)

// AnyFeature turns a constraint that gbatch has no word for into features, as
// backend=aws, of which the node must have one.
func (d *Decoder) AnyFeature(n *document.Node, g *job.Gbatch, any []string) {
	d.Becomes(fmt.Sprintf("gbatch.anyFeatures[%d]", len(g.AnyFeatures)), n)
	g.AnyFeatures = append(g.AnyFeatures, any)
	what := "the feature "
	if len(any) > 1 {
		what = "one of the features "
	}
	d.Note(n, "only nodes that the site gave "+what+strings.Join(any, ", "))
}

// Deadline reads a limit in seconds.
func (d *Decoder) Deadline(n *document.Node, s *job.Spec, scope string) {
	x, ok := d.Integer(n, 1, int(job.MaxDuration))
	if !ok {
		return
	}
	if x < 60 {
		d.Note(n, fmt.Sprintf("is %d seconds, and a minute is the shortest limit: one minute is used", x))
		x = 60
	}
	s.Request.Scheduling.MaxDuration, s.Gbatch.LimitScope = job.Duration(x), scope
	d.Becomes("request.scheduling.maxDuration", n)
}

// Labels keeps labels and annotations.
func (d *Decoder) Labels(n *document.Node, g *job.Gbatch) {
	if n.Kind != document.ObjectKind {
		d.WrongKind(n, "an object")
		return
	}
	for _, kid := range n.Kids {
		text, ok := d.Scalar(kid)
		if !ok {
			continue
		}
		if g.Labels == nil {
			g.Labels = map[string]string{}
		}
		g.Labels[kid.Key] = text
		d.Becomes(document.Member("gbatch.labels", kid.Key), kid)
	}
}

// IsTaskVariable says that a variable tells a task its part, so that no
// document may set it.
func IsTaskVariable(name string) bool {
	return name == "JOB_COMPLETION_INDEX" || name == "JOB_COMPLETIONS"
}
