package ctld

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
)

// apiTypes are the values of the API as the web page's source knows them.
const apiTypes = "../web/src/api.ts"

// TestAPITypes compares the web page's types with the API's description.
func TestAPITypes(t *testing.T) {
	var doc struct {
		Components struct{ Schemas map[string]*typeSchema }
	}
	rec := httptest.NewRecorder()
	newSite(t, nil).server.api.ServeHTTP(rec, httptest.NewRequest("GET", "/openapi.json", nil))
	if err := json.Unmarshal(rec.Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	out.WriteString("// The values of the API. Made from its description: go test ./internal/ctld -run TestAPITypes -rewrite\n")
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		fmt.Fprintf(&out, "\nexport type %s = %s\n", name, doc.Components.Schemas[name].script(""))
	}
	old, err := os.ReadFile(apiTypes)
	if err == nil && bytes.Equal(old, out.Bytes()) {
		return
	}
	if !*rewrite {
		t.Fatalf("%s is not what the code says (%v): write it anew by `go test ./internal/ctld -run TestAPITypes -rewrite`", apiTypes, err)
	}
	if err := os.WriteFile(apiTypes, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// typeSchema is what we read of a type's description.
type typeSchema struct {
	Ref        string `json:"$ref"`
	Type       any    // a name, or a list of names
	OneOf      []*typeSchema
	Enum       []any
	Items      *typeSchema
	Properties map[string]*typeSchema
	Required   []string
	More       any `json:"additionalProperties"` // a schema, or a truth value
}

// script writes a type as TypeScript does.
func (s *typeSchema) script(indent string) string {
	switch {
	case s.Ref != "":
		return s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]
	case len(s.OneOf) > 0:
		return join(s.OneOf, func(one *typeSchema) string { return one.script(indent) })
	case len(s.Enum) > 0:
		return join(s.Enum, func(one any) string { return fmt.Sprintf("%q", one) })
	}
	names, several := s.Type.([]any)
	if !several {
		names = []any{s.Type}
	}
	return join(names, func(name any) string { return s.named(name, indent) })
}

func (s *typeSchema) named(name any, indent string) string {
	switch name {
	case "string", "boolean", "null":
		return name.(string)
	case "integer", "number":
		return "number"
	case "array":
		return "Array<" + s.Items.script(indent) + ">"
	case "object":
		return s.object(indent)
	}
	return "unknown"
}

func (s *typeSchema) object(indent string) string {
	if of, ok := s.More.(map[string]any); ok && len(s.Properties) == 0 {
		raw, _ := json.Marshal(of) // it was read from JSON
		value := &typeSchema{}
		_ = json.Unmarshal(raw, value)
		return "Record<string, " + value.script(indent) + ">"
	}
	var out strings.Builder
	out.WriteString("{\n")
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		mark := "?"
		if slices.Contains(s.Required, name) {
			mark = ""
		}
		fmt.Fprintf(&out, "%s  %s%s: %s\n", indent, name, mark, s.Properties[name].script(indent+"  "))
	}
	return out.String() + indent + "}"
}

func join[T any](list []T, one func(T) string) string {
	var out []string
	for _, v := range list {
		out = append(out, one(v))
	}
	return strings.Join(out, " | ")
}
