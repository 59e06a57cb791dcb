package contact

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/job"
)

// TestDocuments: an order gets the document that it names from its answer, or of those that its request
// said, also where the node has dropped it meanwhile; what is in neither is asked for again.
func TestDocuments(t *testing.T) {
	doc := func(name string) api.Document { return api.Document{Name: name, Spec: job.Spec{Name: "as " + name}} }
	order := func(name string) api.Order { return api.Order{Run: &api.RunOrder{Document: name}} }
	for what, tc := range map[string]struct {
		has, said documents
		sent      []api.Document
		orders    []api.Order
		want      []string // names of the jobs, in the order of the orders; "": nothing to run
		names     []string
	}{
		"sent, for two":      {sent: []api.Document{doc("a")}, orders: []api.Order{order("a"), order("a")}, want: []string{"as a", "as a"}, names: []string{"a"}},
		"had":                {has: documents{doc("a"), doc("b")}, said: documents{doc("a"), doc("b")}, orders: []api.Order{order("a")}, want: []string{"as a"}, names: []string{"b", "a"}},
		"dropped since":      {has: documents{doc("b")}, said: documents{doc("a")}, orders: []api.Order{order("a")}, want: []string{"as a"}, names: []string{"b", "a"}},
		"nowhere":            {has: documents{doc("b")}, orders: []api.Order{order("a")}, want: []string{""}, names: []string{"b"}},
		"in the order, held": {orders: []api.Order{{Run: &api.RunOrder{Spec: job.Spec{Name: "as it is"}}}, {}}, want: []string{"as it is", ""}, names: []string{}},
	} {
		resp := &api.SyncResponse{Desired: tc.orders, Documents: tc.sent}
		now := tc.has.fill(tc.said, resp)
		got := make([]string, len(resp.Desired))
		for i, o := range resp.Desired {
			if o.Run != nil {
				got[i] = o.Run.Spec.Name
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: to run (-want +got):\n%s", what, diff)
		}
		if diff := cmp.Diff(tc.names, now.names()); diff != "" {
			t.Errorf("%s: it has then (-want +got):\n%s", what, diff)
		}
	}
	var d documents
	for i := range 3 * maxDocuments {
		d = d.with(doc(fmt.Sprint(i)))
	}
	if len(d) != maxDocuments {
		t.Errorf("it has %d of %d", len(d), 3*maxDocuments)
	}
}
