package settings

import (
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/document"
)

// file has a field of each kind that files have.
type file struct {
	Name   string            `yaml:"name"`
	Count  int               `yaml:"count"`
	Big    int64             `yaml:"big"`
	ID     uint32            `yaml:"id,omitempty"`
	Part   float64           `yaml:"part"`
	On     bool              `yaml:"on"`
	Words  []string          `yaml:"words"`
	Net    netip.Prefix      `yaml:"net"`
	Inner  inner             `yaml:"inner"`
	Maybe  *inner            `yaml:"maybe"`
	List   []inner           `yaml:"list"`
	Table  map[string]inner  `yaml:"table"`
	Env    map[string]string `yaml:"env"`
	Either either            `yaml:"either"`
	Hidden string            `yaml:"-"`
}

type inner struct {
	Size int `yaml:"size"`
}

// either is a word, or an object with one.
type either string

func (e *either) ReadSetting(d *document.Decoder, n *document.Node) {
	if word := n.Given("word"); word != nil {
		n = word
	}
	if s, ok := d.Str(n); ok {
		*e = either(s)
	}
}

func TestRead(t *testing.T) {
	start := file{Name: "n", Count: 3, Words: []string{"old"}, Inner: inner{5}, Table: map[string]inner{"old": {1}}}
	tests := map[string]struct {
		text     string
		change   func(*file)
		problems string
	}{
		"nothing": {text: "# only this\n"},
		"nulls":   {text: "name:\nwords: ~\ninner: null\nmaybe:\n"},
		"scalars": {text: "name: 007\ncount: 0x10\nbig: -9007199254740993\nid: 4294967295\npart: 1.5\non: yes\nnet: 10.0.0.0/8\n", change: func(f *file) {
			f.Name, f.Count, f.Big, f.ID, f.Part, f.On, f.Net = "007", 16, -9007199254740993, math.MaxUint32, 1.5, true, netip.MustParsePrefix("10.0.0.0/8")
		}},
		"lists":   {text: "words: [a, 1.10, True]\nlist: [{size: 1}, {}]\n", change: func(f *file) { f.Words, f.List = []string{"a", "1.10", "True"}, []inner{{1}, {}} }},
		"emptied": {text: "words: []\ntable: {}\n", change: func(f *file) { f.Words, f.Table = []string{}, map[string]inner{} }},
		"objects": {text: "inner: {}\nmaybe: {}\ntable: {a.b: {size: 2}, c: }\nenv: {X: 1}\n", change: func(f *file) {
			f.Maybe, f.Table, f.Env = &inner{}, map[string]inner{"a.b": {2}, "c": {}}, map[string]string{"X": "1"}
		}},
		"either":   {text: "either: {word: w}\n", change: func(f *file) { f.Either = "w" }},
		"aliases":  {text: "list: &l\nwords: *l\nmaybe: &m {size: 4}\ninner: *m\n", change: func(f *file) { f.Maybe, f.Inner = &inner{4}, inner{4} }},
		"wrong":    {text: "name: [x]\ncount: 1.5\nid: -1\npart: .nan\non: 1\nnet: here\n", problems: "name (line 1): must be a string|count (line 2): must be a whole number|id (line 3): must be a whole number from 0 to 4294967295, is -1|part (line 4): is out of range|on (line 5): must be true or false|net (line 6): "},
		"quoted":   {text: "count: '3'\nbig: 9223372036854775808\n", problems: "count (line 1): must be a whole number, is a string; write it without quotes|big (line 2): must be a whole number from -9223372036854775808 to 9223372036854775807"},
		"kinds":    {text: "words: a\ntable: [a]\ninner: 3\nlist: [4]\neither: []\n", problems: "words (line 1): must be a list, is a string|table (line 2): must be an object|inner (line 3): must be an object|list[0] (line 4): must be an object|either (line 5): must be a string"},
		"keys":     {text: "nmae: x\nHidden: y\nsize: 3\ntable: {a: {sze: 1}, a: {}}\non: true\non: false\n", problems: `nmae (line 1): is not a field of this document; did you mean "name"?|Hidden (line 2): is not|size (line 3): is not a field of this document; known here: big, |table.a.sze (line 4)|table.a (line 4): is given twice|on (line 6): is given twice`},
		"no file":  {text: "a: [\n", problems: "document (line 1): is not YAML"},
		"too deep": {text: "words: " + strings.Repeat("[", 100) + strings.Repeat("]", 100), problems: "document (line 1): has more than 64 levels"},
		"too long": {text: "name: " + strings.Repeat("x", document.MaxBytes), problems: "document: has 1048582 bytes, a file of settings may have at most 1048576"},
		"two":      {text: "name: a\n---\nname: b\n", problems: "document (line 3): has several YAML documents; write all into one"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, want := start, start
			if tc.change != nil {
				tc.change(&want)
			}
			err := Read([]byte(tc.text), &got).Err()
			if tc.problems == "" {
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				return
			}
			problems, ok := err.(document.Problems)
			if !ok {
				t.Fatalf("error %v", err)
			}
			for i, want := range strings.Split(tc.problems, "|") {
				if i >= len(problems) || !strings.HasPrefix(problems[i].String(), want) {
					t.Fatalf("problem %d: want %q of\n%v", i, want, problems)
				}
			}
			if n := strings.Count(tc.problems, "|") + 1; len(problems) != n {
				t.Errorf("want %d problems, got %v", n, problems)
			}
		})
	}
}

// TestFaults: what the owner of a file finds is told at its place, and not of
// what could not be read.
func TestFaults(t *testing.T) {
	var f file
	s := Read([]byte("name: x\nlist:\n  - {size: 1}\n  - {size: no}\ntable:\n  a.b: {size: 2}\nenv: {a: [x]}\n"), &f)
	var faults Faults
	for _, path := range []string{"name", "list[0].size", "list[1].size", "list[1]", "list[7].size", "table.a.b.size", "env", "count", "inner.size"} {
		faults.Add(path, "is odd")
	}
	s.Faults(faults.Err())
	var got []string
	for _, p := range s.Problems() {
		got = append(got, fmt.Sprintf("%s:%d %s", p.Path, p.Line, p.Message))
	}
	want := []string{"count:0 is odd", "inner.size:0 is odd", "name:1 is odd", "list[7].size:2 is odd", "list[0].size:3 is odd", "list[1].size:4 must be a whole number, is a string", "table.a.b.size:6 is odd",
		"env.a:7 must be a string, a number or a truth value, is an array"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestManyProblems: a file of nothing but mistakes has a bounded answer.
func TestManyProblems(t *testing.T) {
	var f file
	s := Read([]byte(strings.Repeat("list: [1, 2, 3]\n", 5000)), &f)
	s.Faults(Faults{{"name", "is odd"}})
	if n := len(s.Problems()); n != document.MaxProblems {
		t.Errorf("%d problems", n)
	}
}

func TestKeys(t *testing.T) {
	want := []string{"name", "count", "big", "id", "part", "on", "words", "net", "inner", "inner.size", "maybe", "maybe.size", "list", "list[].size", "table", "table.*.size", "env", "either"}
	if diff := cmp.Diff(want, Keys(reflect.TypeFor[file]())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// FuzzSettings: anything is read or refused, within bounds.
func FuzzSettings(f *testing.F) {
	for _, s := range []string{"name: x\nwords: [a]\n", "list: &x\nwords: *x\n", "a: &a [*a]\n", "<<: {name: y}\nmaybe: {<<: [{size: 1}]}\n", "table: {? a : {size: 0o7}}\n", "net: !!str 1\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var to file
		s := Read(data, &to)
		s.Faults(Faults{{"list[0].size", "is odd"}, {string(data), "is odd"}})
		if ps := s.Problems(); len(ps) > document.MaxProblems {
			t.Errorf("%d problems", len(ps))
		}
	})
}
