// Package foreign is what the importers of job files share: a decoder that
// remembers which value of a document became which field of the job, and values
// that several systems write alike. It knows no system; each has a package of
// its own. It is pure, and a Decoder belongs to the one who reads with it.
package foreign

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"gbatch/internal/document"
	"gbatch/internal/job"
	"gbatch/internal/job/times"
)

// Decoder reads a document of another format into a job.
type Decoder struct {
	document.Decoder
	from map[string]*document.Node // value by the path of the native field it became
}

var dialect = document.Dialect{Object: "an object", Array: "a list", Bare: "-", Quotes: true}

// New returns a decoder for one document.
func New() *Decoder {
	return &Decoder{Decoder: document.NewDecoder(&dialect), from: map[string]*document.Node{}}
}

// Field is one key of an object; see document.Field.
type Field[T any] = document.Field[*Decoder, T]

// Refuse is a reader for a key that is known and cannot be done: it says what
// to do instead.
func Refuse[T any](hint string) func(*Decoder, *document.Node, *T) {
	return func(d *Decoder, n *document.Node, _ *T) { d.Problem(n, "is not supported", hint) }
}

// Remark is a reader for a key that changes nothing here: it says why.
func Remark[T any](message string) func(*Decoder, *document.Node, *T) {
	return func(d *Decoder, n *document.Node, _ *T) { d.Note(n, message) }
}

// OfText is a reader for a value that must be a string.
func OfText[T any](read func(d *Decoder, n *document.Node, to *T, s string)) func(*Decoder, *document.Node, *T) {
	return func(d *Decoder, n *document.Node, to *T) {
		if s, ok := d.Str(n); ok {
			read(d, n, to, s)
		}
	}
}

// Becomes remembers that the value n of the document became the native field
// at path, as request.docker.image. What is wrong with the field is then told
// of the value.
func (d *Decoder) Becomes(path string, n *document.Node) {
	d.from[path] = n
}

// origin is the value that the native field at path, or what it is part of,
// was made of, or nil.
func (d *Decoder) origin(path string) *document.Node {
	for path != "" {
		if n := d.from[path]; n != nil {
			return n
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return nil
}

// Finish checks the job by the rules of the native document, of which no
// importer has a copy, and gives the places in the document that was read to
// what it says. The job that it returns is the one that the controller will
// read from the native document.
func (d *Decoder) Finish(sub job.Submission) (job.Submission, error) {
	doc, err := sub.Document()
	if err != nil {
		return job.Submission{}, err
	}
	out, err := job.Parse(doc)
	if err == nil && sub.Registry != nil && (out.Registry == nil || *out.Registry != *sub.Registry) {
		err = job.Problems{{Path: "request.docker.image", Message: "has a login whose user has a colon in it: what follows would be read as the password"}}
	}
	if ps, ok := errors.AsType[job.Problems](err); ok {
		var told []job.Problem
		for _, p := range ps {
			switch n := d.origin(p.Path); {
			case n != nil && d.Bad(n): // told in the document's own words
			case n != nil:
				told = append(told, job.Problem{Path: d.Path(n), Line: int(n.Line), Message: p.Message, Hint: p.Hint})
			case d.Count() == 0: // with other problems it may come of them
				p.Line = 0
				told = append(told, p)
			}
		}
		d.Told(told...)
	}
	if ps := d.Problems(); ps != nil {
		return job.Submission{}, ps
	}
	out.Notes, out.Hold, out.Brought = d.notesOf(out.Notes), sub.Hold, sub.Brought // none of which is in a document
	return out, nil
}

// notesOf puts the document's notes in front of those of the native form.
func (d *Decoder) notesOf(native []job.Note) []job.Note {
	all := d.Notes()
	for _, note := range native {
		if n := d.origin(note.Path); n != nil {
			note.Path = d.Path(n)
		}
		all = append(all, note)
	}
	return all
}

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
	x, ok := d.Integer(n, 1, int(times.MaxDuration))
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

// IsPOSIXShell says that a program runs what follows -c as a shell does.
func IsPOSIXShell(program string) bool {
	switch path.Base(program) {
	case "sh", "bash", "dash", "ash", "zsh", "ksh", "mksh":
		return true
	}
	return false
}
