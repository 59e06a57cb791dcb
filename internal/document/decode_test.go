package document

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var testDialect = Dialect{Object: "an object", Array: "a list", Refused: map[string]string{"old": "use new"},
	Elsewhere: func(key string) string { return map[string]string{"away": "there"}[key] }}

func decode(t *testing.T, src string, fields []Field[*Decoder, int]) (count int, problems string) {
	t.Helper()
	n, err := ReadJSON(src)
	if err != nil {
		t.Fatal(err)
	}
	d := NewDecoder(&testDialect)
	Object(&d, n, fields, &count)
	if ps := d.Problems(); ps != nil {
		problems = ps.Error()
	}
	return count, problems
}

// TestManyFields: each of very many fields is read once, whatever their number.
func TestManyFields(t *testing.T) {
	var fields []Field[*Decoder, int]
	var doc []string
	for i := range 300 {
		name := fmt.Sprintf("f%03d", i)
		fields = append(fields, Field[*Decoder, int]{Name: name, Read: func(_ *Decoder, _ *Node, to *int) { *to++ }, Required: true})
		doc = append(doc, `"`+name+`":1`)
	}
	if count, problems := decode(t, "{"+strings.Join(doc, ",")+"}", fields); count != 300 || problems != "" {
		t.Errorf("%d fields were read: %s", count, problems)
	}
	want := "2 problems:\n  f299 (line 1): is required and missing\n  f000 (line 1): is given twice; keep one of them"
	if _, problems := decode(t, "{"+strings.Join(append(doc[:299:299], doc[0]), ",")+"}", fields); problems != want {
		t.Errorf("problems: %s", problems)
	}
}

// TestUnknown is what is told of keys that are no fields.
func TestUnknown(t *testing.T) {
	fields := []Field[*Decoder, int]{{"size", func(d *Decoder, n *Node, to *int) { *to, _ = d.Integer(n, 1, 9) }, false}}
	count, problems := decode(t, `{"size":2,"old":null,"away":1,"old":1,"sizes":1,"zzzzzzz":{"a-b":1}}`, fields)
	want := `4 problems:
  away (line 1): is not a field here; it belongs in there
  old (line 1): is not supported; use new
  sizes (line 1): is not a field of this document; did you mean "size"?
  zzzzzzz (line 1): is not a field of this document; known here: size`
	if diff := cmp.Diff(want, problems); count != 2 || diff != "" {
		t.Errorf("read %d, (-want +got):\n%s", count, diff)
	}
}
