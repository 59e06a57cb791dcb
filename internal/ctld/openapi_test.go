package ctld

import (
	"encoding/json"
	"net/http/httptest"
	"regexp"
	"slices"
	"testing"
)

// TestOpenAPI looks for what generators of clients and strict linters want: a
// server, who may call each operation, and every parameter of a path.
func TestOpenAPI(t *testing.T) {
	var doc struct {
		Servers []struct{ URL string }
		Paths   map[string]map[string]struct {
			OperationID string `json:"operationId"`
			Security    *[]map[string][]string
			Parameters  []struct{ Name, In string }
		}
		Components struct {
			Schemas         map[string]struct{ OneOf []any }
			SecuritySchemes map[string]any
		}
	}
	rec := httptest.NewRecorder()
	newSite(t, nil).server.api.ServeHTTP(rec, httptest.NewRequest("GET", "/openapi.json", nil))
	if err := json.Unmarshal(rec.Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Servers) == 0 || len(doc.Components.Schemas["Command"].OneOf) != 2 {
		t.Errorf("servers %v, a command is %v", doc.Servers, doc.Components.Schemas["Command"])
	}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			if op.OperationID == "" || op.Security == nil {
				t.Errorf("%s %s has no name, or does not say who may call it", method, path)
				continue
			}
			for _, choice := range *op.Security {
				for scheme := range choice {
					if doc.Components.SecuritySchemes[scheme] == nil {
						t.Errorf("%s %s wants %q, which is not described", method, path, scheme)
					}
				}
			}
			for _, m := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(path, -1) {
				if !slices.ContainsFunc(op.Parameters, func(p struct{ Name, In string }) bool { return p.In == "path" && p.Name == m[1] }) {
					t.Errorf("%s %s does not declare %s", method, path, m[1])
				}
			}
		}
	}
}
