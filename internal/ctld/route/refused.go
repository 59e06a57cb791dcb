package route

import (
	"context"
	"net/http"
	"strings"

	"gbatch/internal/api"
)

// auditable is a request as the audit log has it if it is refused.
type auditable struct {
	api.AuditEntry
	join bool // of a machine that would be a node: each failure counts
}

type auditableKey struct{}

// refused notes a request that was refused for who asks. Without a credential
// nobody was refused anything.
func (g *Guard) refused(a auditable, e *api.Error) {
	denied := e.Status == http.StatusForbidden || e.Status == http.StatusUnauthorized
	if a.Via != "" && (denied || a.join && e.Status < http.StatusInternalServerError) {
		g.Refused(a.AuditEntry, e.Message)
	}
}

// object is what a request is about, by its path: "job 12".
func object(r *http.Request) string {
	_, path, _ := strings.Cut(r.Pattern, " ")
	segments := strings.Split(path, "/")
	for i, s := range segments {
		if name, ok := strings.CutPrefix(s, "{"); ok {
			return strings.TrimSuffix(segments[i-1], "s") + " " + r.PathValue(strings.TrimSuffix(name, "}"))
		}
	}
	return ""
}

// fail is what a handler's error is answered with. That the loop refused an event
// is in the audit log already.
func (g *Guard) fail(ctx context.Context, r *Route, err error) *api.Error {
	e, noted := r.said(err)
	if r.turn && !noted && e.Status < http.StatusInternalServerError { // it came to no turn
		if stale := g.fresh(ctx); stale != nil {
			return stale
		}
	}
	if a, ok := ctx.Value(auditableKey{}).(auditable); ok && !noted {
		g.refused(a, e)
	}
	return e
}
