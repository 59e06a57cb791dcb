package contact

import (
	"slices"

	"gbatch/internal/api"
)

// documents are those of jobs that the node has, the one that an order named last at the end. They
// are in memory only: what a request does not name is sent again. A list never changes, as the
// answer to a request may name what it said.
type documents []api.Document

// maxDocuments are as many as the arrays that a node usually has tasks of at one time.
const maxDocuments = 8

// names are what a request says of them: not nil, by which the controller knows that it may send names.
func (d documents) names() []string {
	list := make([]string, 0, len(d))
	for _, doc := range d {
		list = append(list, doc.Name)
	}
	return list
}

// fill puts into the orders of an answer the documents that they name, which came with it or which
// its request said, and returns what the node has then. An order whose document is in neither
// lacks what to run: it is asked for again, and comes whole.
func (d documents) fill(said documents, resp *api.SyncResponse) documents {
	now := d
	for i := range resp.Desired {
		run := resp.Desired[i].Run
		if run == nil || run.Document == "" {
			continue
		}
		has := func(doc api.Document) bool { return doc.Name == run.Document }
		from := resp.Documents
		at := slices.IndexFunc(from, has)
		if at < 0 {
			from = said
			at = slices.IndexFunc(from, has)
		}
		if at < 0 {
			resp.Desired[i].Run = nil
			continue
		}
		run.Spec = from[at].Spec
		now = now.with(from[at])
	}
	return now
}

// with is the list with a document at its end.
func (d documents) with(doc api.Document) documents {
	if len(d) > 0 && d[len(d)-1].Name == doc.Name {
		return d
	}
	list := slices.DeleteFunc(slices.Clone(d), func(o api.Document) bool { return o.Name == doc.Name })
	list = append(list, doc)
	return list[max(0, len(list)-maxDocuments):]
}
