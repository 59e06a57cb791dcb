package ctld

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/route"
)

var rewrite = flag.Bool("rewrite", false, "write the list of routes and bodies in docs/api.md anew")

const (
	apiDocument = "../../docs/api.md"
	apiBegin    = "<!-- made from the code; go test ./internal/ctld -run TestAPIDocument -rewrite -->\n"
)

// TestAPIDocument compares the reference of the API with the routes
// and the comments of the bodies.
func TestAPIDocument(t *testing.T) {
	var doc described
	rec := httptest.NewRecorder()
	guard := newSite(t, nil).server.api
	table := guard.Table
	guard.ServeHTTP(rec, httptest.NewRequest("GET", "/openapi.json", nil))
	if err := json.Unmarshal(rec.Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	maps.Copy(doc.Paths, doc.Sockets)
	var out bytes.Buffer
	bodies := readBodies(t, "../api", "../job", "../node")
	writeRoutes(&out, table, &doc, bodies)
	bodies.write(&out)
	writeErrors(t, &out)

	old, err := os.ReadFile(apiDocument)
	if err != nil {
		t.Fatal(err)
	}
	head, made, ok := strings.Cut(string(old), apiBegin)
	switch {
	case !ok:
		t.Fatalf("%s has no line %q", apiDocument, apiBegin)
	case made == out.String():
	case *rewrite:
		if err := os.WriteFile(apiDocument, []byte(head+apiBegin+out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s is not what the code says: write it anew by `go test ./internal/ctld -run TestAPIDocument -rewrite`", apiDocument)
	}
}

// described is what we read of an OpenAPI document: operations by path and
// method in lower case.
type described struct {
	Paths   map[string]map[string]operation
	Sockets map[string]map[string]operation `json:"x-websockets"`
}

type operation struct {
	Summary    string
	Parameters []struct {
		Name, In, Description string
		Schema                schema
	}
	RequestBody *struct {
		Content map[string]struct{ Schema schema }
	}
	Responses map[string]struct {
		Content map[string]struct{ Schema schema }
	}
}

type schema struct {
	Ref    string `json:"$ref"`
	Type   any    // a word, or several
	Format string
	Items  *schema
}

func writeRoutes(out *bytes.Buffer, table []route.Route, doc *described, bodies *bodies) {
	table = slices.SortedFunc(slices.Values(table), func(a, b route.Route) int {
		ma, pa, _ := strings.Cut(a.Pattern, " ")
		mb, pb, _ := strings.Cut(b.Pattern, " ")
		return cmp.Or(strings.Compare(pa, pb), strings.Compare(ma, mb))
	})
	fmt.Fprint(out, "\n## Routes\n\n| route | who | what | asks | answers |\n|---|---|---|---|---|\n")
	var parameters bytes.Buffer
	for _, r := range table {
		p := r.Pattern
		method, path, _ := strings.Cut(p, " ")
		o, ok := doc.Paths[path][strings.ToLower(method)]
		if !ok {
			if r.Doc != "" {
				fmt.Fprintf(out, "| `%s` | %s | %s | | |\n", p, r.Who, r.Doc)
			}
			continue
		}
		ofNodes := r.Who == access.ByNodes || r.Who == access.ByJoiners
		asks, answers := "", ""
		if o.RequestBody != nil {
			asks = bodies.link(o.RequestBody.Content["application/json"].Schema.Ref, ofNodes)
		}
		for status, resp := range o.Responses {
			if c, ok := resp.Content["application/json"]; status == "200" && ok {
				answers = bodies.link(c.Schema.Ref, ofNodes)
			} else if status != "default" && status != "4XX" {
				answers = map[string]string{"101": "a WebSocket", "204": "nothing (204)", "200": "bytes"}[status]
			}
			if _, ok := resp.Content["text/event-stream"]; ok {
				answers = "server-sent events"
			}
		}
		fmt.Fprintf(out, "| `%s` | %s | %s | %s | %s |\n", p, r.Who, r.Doc, asks, answers)
		for _, q := range o.Parameters {
			if q.In == "path" {
				continue
			}
			fmt.Fprintf(&parameters, "| `%s` | `%s`%s | %s | %s |\n", p, q.Name, map[bool]string{true: " (header)"}[q.In == "header"], kindOf(&q.Schema), q.Description)
		}
	}
	fmt.Fprintf(out, "\n## Parameters\n\nOf the query, where nothing else is said. All may be left out.\n\n| route | name | type | meaning |\n|---|---|---|---|\n%s", parameters.String())
}

func kindOf(s *schema) string {
	switch {
	case s.Items != nil:
		return "array of " + kindOf(s.Items)
	case s.Format == "date-time":
		return "time"
	case s.Type == "boolean":
		return "truth value"
	}
	return fmt.Sprint(s.Type)
}

// writeErrors lists the codes with their status.
func writeErrors(t *testing.T, out *bytes.Buffer) {
	rows := map[string]string{}
	for code, text := range constants(t, "../api", "Code") {
		rows[code] = fmt.Sprintf("| `%s` | %d | %s |\n", code, api.Errorf(code, "").Status, text)
	}
	fmt.Fprint(out, "\n## Errors\n\nWhat fails is answered with an [Error](#error). A `code` is for programs; `message` and `hint` are for people.\n\n| code | status | meaning |\n|---|---|---|\n")
	codes := make([]string, 0, len(rows))
	for c := range rows {
		codes = append(codes, c)
	}
	slices.Sort(codes)
	for _, c := range codes {
		fmt.Fprint(out, rows[c])
	}
}
