// Package getopt reads options as the commands of Slurm take them: under several
// names, in any order, some from a variable when they are not given, and some only
// to say what there is instead. What an option means is its command's.
package getopt

import (
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"gbatch/internal/cli/exit"
)

// Option is an option of one of these commands, which may have several names.
type Option struct {
	names   []string // --user, -u
	set     func(value string) error
	flag    func() // instead of set: it takes no value
	instead string // instead of both: it is not supported
	env     string // the variable that says the same where the option is not given
	given   *bool  // whether it was
	maybe   *bool  // it was given, perhaps without the value that it may have
}

// alone is what pflag sets for an option that has no value.
const alone = "\x00"

// named is an option under one of its names, as pflag wants it.
type named struct {
	Option
	name string
}

func (o *named) Set(value string) error {
	if o.given != nil {
		*o.given = true
	}
	switch {
	case o.instead != "":
		return exit.Usagef("option %s is not played here: %s", o.name, o.instead)
	case o.maybe != nil && value == alone:
		*o.maybe = true
		return nil
	case o.flag == nil:
		if o.maybe != nil {
			*o.maybe = true
		}
		return o.set(value)
	case value != alone:
		return exit.Usagef("option %s takes no value", o.name)
	}
	o.flag()
	return nil
}

func (o *named) String() string { return "" } // for a help that is not used
func (o *named) Type() string   { return "" }

// Is says whether a name is one of the option's.
func (o Option) Is(name string) bool { return slices.Contains(o.names, name) }

// From is the option with a variable that says the same. Of one without a value
// the variable need only be there.
func (o Option) From(variable string) Option {
	o.env, o.given = variable, new(bool)
	return o
}

// ParseWith reads options, and variables for those that are not given.
func ParseWith(env func(string) (string, bool), args []string, options []Option) (rest []string, err error) {
	if rest, err = Parse(args, options); err != nil {
		return nil, err
	}
	for _, o := range options {
		value, ok := "", false
		if o.env != "" && !*o.given {
			value, ok = env(o.env)
		}
		switch {
		case !ok:
		case o.instead != "":
			return nil, exit.Usagef("the variable %s is not played here: %s", o.env, o.instead)
		case o.flag != nil:
			o.flag()
		default:
			if err := o.set(value); err != nil {
				return nil, err
			}
		}
	}
	return rest, nil
}

// Parse reads options and gives what is left, in any order as getopt does.
func Parse(args []string, options []Option) (rest []string, err error) {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	set.SetOutput(io.Discard)
	for _, o := range options {
		for _, name := range o.names {
			f := &pflag.Flag{Name: strings.TrimPrefix(name, "--"), Value: &named{o, name}}
			if len(name) == 2 { // -u; its long name is one that nobody can type
				f.Shorthand = name[1:]
			}
			if o.set == nil || o.maybe != nil {
				f.NoOptDefVal = alone
			}
			set.AddFlag(f)
		}
	}
	set.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(whole(name, options))
	})
	if err = set.Parse(args); err == nil {
		return set.Args(), nil
	}
	dashes := func(name, shorts string) string {
		if shorts != "" {
			return "-" + name
		}
		return "--" + name
	}
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return nil, notPlayed(dashes(e.GetSpecifiedName(), e.GetSpecifiedShortnames()), options)
	}
	if e, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return nil, exit.Usagef("option %s needs a value", dashes(e.GetSpecifiedName(), e.GetSpecifiedShortnames()))
	}
	if e, ok := errors.AsType[*exit.Error](err); ok {
		return nil, e
	}
	if errors.Is(err, pflag.ErrHelp) { // these commands have no help of their own
		if slices.Contains(args, "--help") {
			return nil, notPlayed("--help", options)
		}
		return nil, notPlayed("-h", options)
	}
	return nil, exit.Usagef("%w", err)
}

// whole is the name of a long option that may have been cut short, as getopt_long
// takes it: one that begins so, where no other option does. The names of one option
// are no doubt between options.
func whole(name string, options []Option) string {
	found, of := name, -1
	for i, o := range options {
		for _, n := range o.names {
			long, is := strings.CutPrefix(n, "--")
			switch {
			case n == name || is && long == name:
				return name
			case !is || !strings.HasPrefix(long, name):
			case of < 0:
				found, of = long, i
			case of != i:
				of = len(options) // several begin so; one may still be called so
			}
		}
	}
	if of == len(options) {
		return name
	}
	return found
}

// notPlayed says which options there are instead.
func notPlayed(name string, options []Option) error {
	var known []string
	for _, o := range options {
		if o.instead == "" {
			known = append(known, strings.Join(o.names, " "))
		}
	}
	return exit.Usagef("option %s is not played here: there are %s", name, strings.Join(known, ", "))
}

// List is an option whose value is a list with commas.
func List(to *[]string, names ...string) Option {
	return Option{names: names, set: func(v string) error {
		for s := range strings.SplitSeq(v, ",") {
			if s = strings.TrimSpace(s); s != "" {
				*to = append(*to, s)
			}
		}
		return nil
	}}
}

// String is an option whose value is a word.
func String(to *string, names ...string) Option {
	return Option{names: names, set: func(v string) error { *to = v; return nil }}
}

// Perhaps is an option whose value may be missing; behind a blank there is none.
func Perhaps(o Option, given *bool) Option {
	o.maybe = given
	return o
}

// Bool is an option that has no value.
func Bool(to *bool, names ...string) Option {
	return Option{names: names, flag: func() { *to = true }}
}

// Do is an option without a value that does something.
func Do(what func(), names ...string) Option { return Option{names: names, flag: what} }

// Ignored is options without a value that change nothing here.
func Ignored(names ...string) Option { return Option{names: names, flag: func() {}} }

// Instead is options that are refused, with what there is instead.
func Instead(instead string, names ...string) Option {
	return Option{names: names, instead: instead}
}
