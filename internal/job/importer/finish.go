package importer

import (
	"errors"
	"strings"

	"gbatch/internal/job"
)

// becomes remembers that the value n of the document became the native field
// at path, as request.docker.image. What is wrong with the field is then told
// of the value.
func (d *decoder) becomes(path string, n *node) {
	if d.from == nil {
		d.from = map[string]*node{}
	}
	d.from[path] = n
}

// origin is the value that the native field at path, or what it is part of,
// was made of, or nil.
func (d *decoder) origin(path string) *node {
	for path != "" {
		if n := d.from[path]; n != nil {
			return n
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return nil
}

// finish checks the job by the rules of the native document, of which no
// importer has a copy, and gives the places in the document that was read to
// what it says. The job that it returns is the one that the controller will
// read from the native document.
func (d *decoder) finish(sub job.Submission) (job.Submission, error) {
	doc, err := sub.Document()
	if err != nil {
		return job.Submission{}, err
	}
	out, err := job.Parse(doc)
	if ps, ok := errors.AsType[job.Problems](err); ok {
		before := len(d.found)
		for _, p := range ps {
			switch n := d.origin(p.Path); {
			case n != nil && d.bad[n]: // told in the document's own words
			case n != nil:
				d.found = append(d.found, job.Problem{Path: n.path(), Line: n.line, Message: p.Message, Hint: p.Hint})
			case before == 0: // with other problems it may come of them
				p.Line = 0
				d.found = append(d.found, p)
			}
		}
	}
	if err := d.problems(); err != nil {
		return job.Submission{}, err
	}
	out.Notes = d.notesOf(out.Notes)
	return out, nil
}

// notesOf puts the document's notes in front of those of the native form.
func (d *decoder) notesOf(native []job.Note) []job.Note {
	all := d.notes
	for _, note := range native {
		if n := d.origin(note.Path); n != nil {
			note.Path = n.path()
		}
		all = append(all, note)
	}
	return all
}
