package ctld

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"gbatch/internal/api"
)

var rewrite = flag.Bool("rewrite", false, "write the list of routes and bodies in docs/api.md anew")

const (
	apiDocument = "../../docs/api.md"
	apiBegin    = "<!-- made from the code; go test ./internal/ctld -run TestAPIDocument -rewrite -->\n"
)

// plainRoutes are those that are not in the API's own description.
var plainRoutes = map[string]string{
	"POST " + api.PathBackup: "A backup as bytes; only root on the controller's machine. `?vault=false` leaves the key of secrets out",
	"POST " + api.PathStream: "Between daemons: the bytes that a client asked for",
	"GET " + api.PathStream:  "Between daemons: a two-way stream that a client asked for",
	"GET /metrics":           "Metrics as Prometheus reads them",
	"GET /healthz":           "200 while the controller serves",
	"GET /openapi.json":      "This API as an OpenAPI 3.1 document; also `.yaml`, and `/openapi-3.0.json` and `.yaml`",
	"GET /openapi.yaml":      "", "GET /openapi-3.0.json": "", "GET /openapi-3.0.yaml": "", "/": "",
}

var accessWords = map[access]string{
	anyone: "anyone", persons: "users", known: "users, nodes", operators: "operators", admins: "admins",
	nodes: "the node itself", joiners: "a token to join", scrapers: "operators, `metrics.scrapers`",
}

// TestAPIDocument compares the reference of the API with the routes, the
// doors, and the comments of the bodies.
func TestAPIDocument(t *testing.T) {
	var doc described
	rec := httptest.NewRecorder()
	newSite(t, nil).server.api.ServeHTTP(rec, httptest.NewRequest("GET", "/openapi.json", nil))
	if err := json.Unmarshal(rec.Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	bodies := readBodies(t, "../api", "../job", "../node")
	writeRoutes(t, &out, &doc, bodies)
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
	Paths map[string]map[string]struct {
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
}

type schema struct {
	Ref    string `json:"$ref"`
	Type   any    // a word, or several
	Format string
	Items  *schema
}

func writeRoutes(t *testing.T, out *bytes.Buffer, doc *described, bodies *bodies) {
	var patterns []string
	for p := range doors {
		patterns = append(patterns, p)
	}
	slices.SortFunc(patterns, func(a, b string) int {
		ma, pa, _ := strings.Cut(a, " ")
		mb, pb, _ := strings.Cut(b, " ")
		return cmp.Or(strings.Compare(pa, pb), strings.Compare(ma, mb))
	})
	fmt.Fprint(out, "\n## Routes\n\n| route | who | what | asks | answers |\n|---|---|---|---|---|\n")
	var parameters bytes.Buffer
	for _, p := range patterns {
		method, path, _ := strings.Cut(p, " ")
		o, ok := doc.Paths[path][strings.ToLower(method)]
		if !ok {
			what, ok := plainRoutes[p]
			if !ok {
				t.Errorf("route %s is neither in the API's description nor among plainRoutes", p)
			}
			if what != "" {
				fmt.Fprintf(out, "| `%s` | %s | %s | | |\n", p, accessWords[doors[p]], what)
			}
			continue
		}
		ofNodes := doors[p] == nodes || doors[p] == joiners
		asks, answers := "", ""
		if o.RequestBody != nil {
			asks = bodies.link(o.RequestBody.Content["application/json"].Schema.Ref, ofNodes)
		}
		for status, r := range o.Responses {
			if c, ok := r.Content["application/json"]; status == "200" && ok {
				answers = bodies.link(c.Schema.Ref, ofNodes)
			} else if status != "default" {
				answers = map[string]string{"101": "a WebSocket", "204": "nothing (204)", "200": "bytes"}[status]
			}
			if _, ok := r.Content["text/event-stream"]; ok {
				answers = "server-sent events"
			}
		}
		fmt.Fprintf(out, "| `%s` | %s | %s | %s | %s |\n", p, accessWords[doors[p]], o.Summary, asks, answers)
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

// writeErrors lists the codes with their status: those of the API, and those of
// decisions of the controller.
func writeErrors(t *testing.T, out *bytes.Buffer) {
	rows := map[string]string{}
	for code, comment := range constants(t, "../api", "Code") {
		status, text, _ := strings.Cut(comment, ": ")
		rows[code] = fmt.Sprintf("| `%s` | %s | %s |\n", code, status, text)
	}
	for code, status := range refusalStatus {
		if rows[string(code)] == "" {
			rows[string(code)] = fmt.Sprintf("| `%s` | %d | %s |\n", code, status, constants(t, "../control", "OverLimit")[string(code)])
		}
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
