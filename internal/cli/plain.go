package cli

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// worded is a command that may be given words and switches alone, and has no defaults of
// its own. Making a model of its flags for them would take a third of the command's time.
// A switch that is tagged model is not taken so.
type worded interface {
	Words(words []string)
	Run(context.Context, *App) error
	connection() *Connection
}

// plainly hands a command its arguments, if each is a word or the whole name of a switch. Else it
// changes nothing: what they mean, and what is wrong with them, is told by kong.
func plainly(cmd command, args []string) (worded, bool) {
	c, ok := cmd.(worded)
	if !ok || len(args) == 0 {
		return nil, false
	}
	var words, apart []string
	var on []reflect.Value
	for _, arg := range args {
		if arg != "" && arg[0] != '-' {
			words = append(words, arg)
			continue
		}
		f, v, ok := switchOf(reflect.ValueOf(cmd).Elem(), arg)
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
	for _, v := range on {
		v.SetBool(true)
	}
	c.Words(words)
	c.connection().Timeout = timeout
	return c, true
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
