package foreign

import (
	"fmt"
	"strings"

	"gbatch/internal/document"
	"gbatch/internal/job"
)

// Text reads a string, which becomes the native field at path.
func (d *Decoder) Text(n *document.Node, to *string, path string) {
	*to, _ = d.Str(n)
	d.Becomes(path, n)
}

// Word is Text for a value that may be a number, too.
func (d *Decoder) Word(n *document.Node, to *string, path string) {
	*to, _ = d.Scalar(n)
	d.Becomes(path, n)
}

// Truth is Text for a truth value.
func (d *Decoder) Truth(n *document.Node, to *bool, path string) {
	*to, _ = d.Boolean(n)
	d.Becomes(path, n)
}

// Set puts a value into a map, which is made if there is none.
func Set(to *map[string]string, key, value string) {
	if *to == nil {
		*to = map[string]string{}
	}
	(*to)[key] = value
}

// AnyFeature turns a constraint that gbatch has no word for into features, as
// backend=aws, of which the node must have one.
func (d *Decoder) AnyFeature(n *document.Node, g *job.Gbatch, name string, values ...string) {
	var any []string
	for _, v := range values {
		any = append(any, name+"="+v)
	}
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
		Set(&g.Labels, kid.Key, text)
		d.Becomes(document.Member("gbatch.labels", kid.Key), kid)
	}
}

// IsTaskVariable says that a variable tells a task its part, so that no
// document may set it.
func IsTaskVariable(name string) bool {
	return name == "JOB_COMPLETION_INDEX" || name == "JOB_COMPLETIONS"
}
