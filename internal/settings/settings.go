// Package settings reads the files by which people configure daemons and
// commands. A file is YAML and its keys are the fields of a struct, by their yaml
// tags. It is read strictly, over the defaults that the struct has: what is
// unknown, repeated or of another kind is told with its path and line, all of it
// at once and together with what the owner of the struct finds wrong.
//
// It opens no file, and knows no key of any.
package settings

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"gbatch/internal/document"
)

// Source is a file that was read: where its values are, and what is wrong.
type Source struct {
	document.Decoder
	root *document.Node
}

// Reader is a value that is written in more than one way, such as a name or an
// object. It reports what is wrong to the decoder.
type Reader interface {
	ReadSetting(d *document.Decoder, n *document.Node)
}

// field reads one key into the struct at to.
type field = document.Field[*Source, reflect.Value]

// Read reads a file into the struct that to points to. What the file does not
// name, or names with no value, stays as it is. Problems are told by Err.
func Read(data []byte, to any) *Source {
	v := reflect.ValueOf(to).Elem()
	s := &Source{Decoder: document.NewDecoder(&document.Dialect{Object: "an object", Array: "a list", Bare: "-", Quotes: true, Elsewhere: elsewhere(v.Type())})}
	root, err := document.ReadSettings(data)
	if err != nil {
		s.Told(err.(document.Problems)...)
		return s
	}
	s.root = root
	s.object(root, v)
	return s
}

// Err is all that is wrong with the file, a document.Problems, or nil.
func (s *Source) Err() error {
	if ps := s.Problems(); ps != nil {
		return ps
	}
	return nil
}

func (s *Source) object(n *document.Node, v reflect.Value) {
	var fields []field
	for i := range v.NumField() {
		if name := key(v.Type().Field(i)); name != "" {
			fields = append(fields, field{Name: name, Read: func(s *Source, n *document.Node, to *reflect.Value) { s.value(n, to.Field(i)) }})
		}
	}
	document.Object(s, n, fields, &v)
}

// key is the name of a field in files; "": it is not there.
func key(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return strings.TrimPrefix(name, "-")
}

// value reads a value that is not null. What is wrong leaves v as it is.
func (s *Source) value(n *document.Node, v reflect.Value) {
	switch to := v.Addr().Interface().(type) {
	case Reader:
		to.ReadSetting(&s.Decoder, n)
		return
	case encoding.TextUnmarshaler:
		if text, ok := s.Scalar(n); ok {
			if err := to.UnmarshalText([]byte(text)); err != nil {
				s.Problem(n, err.Error(), "")
			}
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		s.object(n, v)
	case reflect.Pointer:
		at := reflect.New(v.Type().Elem())
		s.value(n, at.Elem())
		v.Set(at)
	case reflect.Slice:
		s.list(n, v)
	case reflect.Map:
		s.table(n, v)
	case reflect.Bool:
		if b, ok := s.Boolean(n); ok {
			v.SetBool(b)
		}
	case reflect.String:
		if text, ok := s.Scalar(n); ok {
			v.SetString(strings.Clone(text))
		}
	default:
		s.number(n, v)
	}
}

func (s *Source) list(n *document.Node, v reflect.Value) {
	if n.Kind != document.ArrayKind {
		s.WrongKind(n, "a list")
		return
	}
	all := reflect.MakeSlice(v.Type(), 0, len(n.Kids))
	s.Elements(n, func(kid *document.Node) {
		one := reflect.New(v.Type().Elem()).Elem()
		s.value(kid, one)
		all = reflect.Append(all, one)
	})
	v.Set(all)
}

// table reads an object whose keys are not known.
func (s *Source) table(n *document.Node, v reflect.Value) {
	if n.Kind != document.ObjectKind {
		s.WrongKind(n, "an object")
		return
	}
	all := reflect.MakeMap(v.Type())
	for _, kid := range n.Kids {
		name := reflect.ValueOf(strings.Clone(kid.Key)).Convert(v.Type().Key())
		if all.MapIndex(name).IsValid() {
			s.Repeated(kid)
			continue
		}
		one := reflect.New(v.Type().Elem()).Elem()
		if kid.Kind != document.NullKind {
			s.value(kid, one)
		}
		all.SetMapIndex(name, one)
	}
	v.Set(all)
}

// number reads a whole number, as exactly as v can have it, or one with a part.
func (s *Source) number(n *document.Node, v reflect.Value) {
	if v.CanFloat() {
		if x, ok := s.Number(n, "a number"); ok {
			v.SetFloat(x)
		}
		return
	}
	if n.Kind != document.NumberKind {
		s.Number(n, "a whole number") // which tells what is wrong
		return
	}
	if v.CanInt() {
		x, err := strconv.ParseInt(n.Text, 0, v.Type().Bits())
		if err != nil {
			s.notWhole(n, math.MinInt64>>(64-v.Type().Bits()), math.MaxInt64>>(64-v.Type().Bits()))
			return
		}
		v.SetInt(x)
		return
	}
	x, err := strconv.ParseUint(n.Text, 0, v.Type().Bits())
	if err != nil {
		s.notWhole(n, 0, math.MaxUint64>>(64-v.Type().Bits()))
		return
	}
	v.SetUint(x)
}

func (s *Source) notWhole(n *document.Node, low int64, high uint64) {
	s.Problem(n, fmt.Sprintf("must be a whole number from %d to %d, is %s", low, high, document.Shorten(n.Text)), "")
}

// Keys are the paths of all keys that a struct of this type is read by, in its
// order: projects[].name for those of a list's elements, policy.qos.*.priority
// for those of a table's.
func Keys(t reflect.Type) []string {
	var all []string
	walk(t, "", func(path, _ string) { all = append(all, path) })
	return all
}

// walk calls visit with the path of each key, and that of the object it is in.
func walk(t reflect.Type, in string, visit func(path, in string)) {
	switch reflect.New(t).Interface().(type) {
	case Reader, encoding.TextUnmarshaler:
		return
	}
	switch t.Kind() {
	case reflect.Pointer:
		walk(t.Elem(), in, visit)
	case reflect.Slice:
		walk(t.Elem(), in+"[]", visit)
	case reflect.Map:
		walk(t.Elem(), in+".*", visit)
	case reflect.Struct:
		for i := range t.NumField() {
			if name := key(t.Field(i)); name != "" {
				path := strings.TrimPrefix(in+"."+name, ".")
				visit(path, in)
				walk(t.Field(i).Type, path, visit)
			}
		}
	}
}

// maxElsewhere is how many places are named to which a key may belong.
const maxElsewhere = 3

// elsewhere says in which objects a key is known.
func elsewhere(t reflect.Type) func(string) string {
	return func(name string) string {
		var in []string
		walk(t, "", func(path, at string) {
			if path[strings.LastIndexByte(path, '.')+1:] != name {
				return
			}
			if at == "" {
				at = "the top level of the file"
			}
			in = append(in, at)
		})
		slices.Sort(in)
		if in = slices.Compact(in); len(in) > maxElsewhere {
			return ""
		}
		return strings.Join(in, " or ")
	}
}
