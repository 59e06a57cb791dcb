package cli

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// worded is a command, or a part of one, that may be given words and switches alone, and has
// no defaults of its own. Making a model of all flags for them would take a third of the
// command's time. A switch that is tagged model is not taken so. Words tells whether the
// words will do; if not, they are left alone.
type worded interface {
	Words(words []string) bool
	Run(context.Context, *App) error
}

// plainly hands a command, or the part of it that is meant, its arguments, if each is a word or
// the whole name of a switch. Else it changes nothing: what they mean, and what is wrong with
// them, is told by kong.
func plainly(cmd command, args []string) (worded, bool) {
	whole := reflect.ValueOf(cmd).Elem()
	in, args := partOf(whole, args)
	c, ok := in.Addr().Interface().(worded)
	if !ok {
		return nil, false
	}
	var words, apart []string
	var on []reflect.Value
	for _, arg := range args {
		if arg != "" && arg[0] != '-' {
			if partNamed(whole, arg).IsValid() {
				return nil, false // kong knows whether it is a part's name or a word
			}
			words = append(words, arg)
			continue
		}
		f, v, ok := switchOf(whole, arg)
		if !ok && in != whole {
			f, v, ok = switchOf(in, arg)
		}
		if !ok || slices.Contains(on, v) {
			return nil, false
		}
		for group := range strings.SplitSeq(f.Tag.Get("xor"), ",") {
			if group != "" && slices.Contains(apart, group) {
				return nil, false
			}
			apart = append(apart, group)
		}
		on = append(on, v)
	}
	if !c.Words(words) {
		return nil, false
	}
	for _, v := range on {
		v.SetBool(true)
	}
	cmd.connection().Timeout = timeout
	return c, true
}

// partOf is the part of a command that arguments mean, and those that are for it.
func partOf(whole reflect.Value, args []string) (reflect.Value, []string) {
	if len(args) > 0 {
		if part := partNamed(whole, args[0]); part.IsValid() {
			return part, args[1:]
		}
	}
	for i := range whole.NumField() {
		if whole.Type().Field(i).Tag.Get("default") == "withargs" {
			return whole.Field(i), args
		}
	}
	return whole, args
}

// partNamed is the part of a command with a name; the zero value: it has none.
func partNamed(whole reflect.Value, name string) reflect.Value {
	for i := range whole.NumField() {
		f := whole.Type().Field(i)
		if _, part := f.Tag.Lookup("cmd"); part && (name == flagName(f) || slices.Contains(strings.Split(f.Tag.Get("aliases"), ","), name)) {
			return whole.Field(i)
		}
	}
	return reflect.Value{}
}

// switchOf finds the field of a command that an argument turns on.
func switchOf(in reflect.Value, arg string) (reflect.StructField, reflect.Value, bool) {
	long, isLong := strings.CutPrefix(arg, "--")
	for i := range in.NumField() {
		f := in.Type().Field(i)
		if f.Anonymous {
			if inner, v, ok := switchOf(in.Field(i), arg); ok {
				return inner, v, true
			}
			continue
		}
		if f.Type != reflect.TypeFor[bool]() || !f.IsExported() || f.Tag.Get("kong") == "-" {
			continue
		}
		if _, model := f.Tag.Lookup("model"); model {
			continue
		}
		if isLong && long == flagName(f) || !isLong && f.Tag.Get("short") != "" && arg == "-"+f.Tag.Get("short") {
			return f, in.Field(i), true
		}
	}
	return reflect.StructField{}, reflect.Value{}, false
}

// flagName is what kong calls the flag of a field.
func flagName(f reflect.StructField) string {
	if name := f.Tag.Get("name"); name != "" {
		return name
	}
	var b strings.Builder
	for i, r := range f.Name {
		if i > 0 && unicode.IsUpper(r) {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
