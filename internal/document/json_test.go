package document

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// FuzzJSON compares the reader with encoding/json: they accept the same texts
// and read the same value. Left out is where encoding/json is lax on purpose:
// text that is not UTF-8, half surrogates, and documents beyond our bounds.
func FuzzJSON(f *testing.F) {
	paths, _ := filepath.Glob("../job/testdata/*/*.json")
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`[1,-0,0.5e+10,"\u0041\ud83d\ude00\/",true,false,null,{}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		src := string(data)
		if !utf8.ValidString(src) || strings.Contains(src, "\ufffd") || len(src) > MaxBytes {
			t.Skip()
		}
		n, err := readJSON(src)
		if err != nil && (strings.Contains(err.text, "nested") || strings.Contains(err.text, "values") || strings.Contains(src, `\u`)) {
			t.Skip()
		}
		if valid := json.Valid(data); valid != (err == nil) {
			t.Fatalf("valid is %v, but the reader says %v", valid, err)
		}
		if err != nil {
			if err.off < 0 || err.off > len(src) {
				t.Errorf("error at offset %d of %d", err.off, len(src))
			}
			return
		}
		dec := json.NewDecoder(strings.NewReader(src))
		dec.UseNumber()
		var want any
		if err := dec.Decode(&want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, plainValue(n)); diff != "" {
			t.Errorf("value (-want +got):\n%s", diff)
		}
	})
}

// plainValue is n as encoding/json would give it.
func plainValue(n *Node) any {
	switch n.Kind {
	case BoolKind:
		return n.Text == "true"
	case NumberKind:
		return json.Number(n.Text)
	case StringKind:
		return n.Text
	case ArrayKind:
		all := make([]any, 0, len(n.Kids))
		for _, kid := range n.Kids {
			all = append(all, plainValue(kid))
		}
		return all
	case ObjectKind:
		all := map[string]any{}
		for _, kid := range n.Kids {
			all[kid.Key] = plainValue(kid)
		}
		return all
	}
	return nil
}
