package streams

import (
	"errors"
	"net/http/httptest"
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/ctld/access"
)

// TestStreamOfAnotherNode: a node that names a stream of another finds none, and
// the other's is left as it is.
func TestStreamOfAnotherNode(t *testing.T) {
	h := NewHub()
	h.byID["secret"] = &stream{home: "gpu1"}
	ctx := access.WithCaller(t.Context(), access.Identity{Role: access.RoleNode, Node: "gpu2"}, "")
	r := httptest.NewRequestWithContext(ctx, "POST", "/v1/streams/secret", nil)
	r.SetPathValue("id", "secret")
	r.Header.Set(api.HeaderStreamError, "no")
	var e *api.Error
	if err := h.Serve(httptest.NewRecorder(), r); !errors.As(err, &e) || e.Code != api.CodeNotFound {
		t.Errorf("a stream of another node: %v", err)
	}
	if h.byID["secret"] == nil {
		t.Error("the other node's stream is gone")
	}
}
