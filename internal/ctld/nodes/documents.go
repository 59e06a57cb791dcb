package nodes

import (
	"slices"

	"gbatch/internal/api"
	"gbatch/internal/job"
)

// apart takes jobs' documents out of their orders, which name them from then on, and returns those that the
// node does not have, each once. Has is what its request said; nil is an older node's, which is sent all
// in the orders. So nothing is kept here of what a node has: one that lost it does not say it.
func apart(orders []api.Order, has []string) (documents []api.Document) {
	for i := range orders {
		run := orders[i].Run
		if run == nil {
			continue
		}
		if has == nil {
			run.Document = ""
			continue
		}
		sent := func(d api.Document) bool { return d.Name == run.Document }
		if !slices.Contains(has, run.Document) && !slices.ContainsFunc(documents, sent) {
			documents = append(documents, api.Document{Name: run.Document, Spec: run.Spec})
		}
		run.Spec = job.Spec{}
	}
	return documents
}
