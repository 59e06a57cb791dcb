package streams

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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

// TestLogOverAtOnce: a log that its node has sent whole before anybody waits for it comes to its end.
func TestLogOverAtOnce(t *testing.T) {
	for range 50 { // either of two things that are both so may be seen first
		synctest.Test(t, func(t *testing.T) {
			h, client := NewHub(), httptest.NewRecorder()
			node := access.WithCaller(t.Context(), access.Identity{Role: access.RoleNode, Node: "gpu1"}, "")
			send := func() {
				id := h.Take("gpu1")[0].ID
				r := httptest.NewRequestWithContext(node, "POST", "/v1/streams/"+id, strings.NewReader("all of it\n"))
				r.SetPathValue("id", id)
				if err := h.Serve(httptest.NewRecorder(), r); err != nil {
					t.Error(err)
				}
			}
			if err := h.copy(t.Context(), client, asked{node: "gpu1", wait: time.Minute, wake: send}); err != nil || client.Body.String() != "all of it\n" {
				t.Errorf("%q, %v", client.Body, err)
			}
		})
	}
}
