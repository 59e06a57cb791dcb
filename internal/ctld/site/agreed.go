package site

import (
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Settings are those that several controllers must have alike, by path: a digest of each.
type Settings map[string]string

// Agreed are the settings that several controllers must have alike: all but those of a machine,
// which are marked own.
func (c Config) Agreed() Settings {
	out := Settings{}
	out.add("", reflect.ValueOf(c))
	return out
}

var textType = reflect.TypeFor[encoding.TextMarshaler]()

func (s Settings) add(path string, v reflect.Value) {
	if v.Kind() == reflect.Pointer {
		s.note(path, !v.IsNil())
		if !v.IsNil() {
			s.add(path, v.Elem())
		}
		return
	}
	if (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0 { // named or not, there is nothing in it
		s.note(path, nil)
		return
	}
	if v.Kind() != reflect.Struct || v.Type().Implements(textType) {
		s.note(path, v.Interface())
		return
	}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if f.Tag.Get("own") != "" || name == "-" {
			continue
		}
		if path != "" {
			name = path + "." + name
		}
		s.add(name, v.Field(i))
	}
}

func (s Settings) note(path string, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		text = fmt.Appendf(nil, "%#v", value) // differs rather than being the same unseen
	}
	sum := sha256.Sum256(text)
	s[path] = hex.EncodeToString(sum[:8])
}

// Differ are the paths of what the two have otherwise, sorted. What is in something that only one
// of them has is not told apart from that.
func (s Settings) Differ(other Settings) []string {
	all := maps.Clone(s)
	maps.Copy(all, other)
	var out []string
	for _, path := range slices.Sorted(maps.Keys(all)) {
		in := func(outer string) bool { return strings.HasPrefix(path, outer+".") }
		if s[path] != other[path] && !slices.ContainsFunc(out, in) {
			out = append(out, path)
		}
	}
	return out
}
