package slurm

import (
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
)

// option is an option of one of these commands, which may have several names.
type option struct {
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
	option
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

// from is the option with a variable that says the same. Of one without a value
// the variable need only be there.
func (o option) from(variable string) option {
	o.env, o.given = variable, new(bool)
	return o
}

// parseWith reads options, and variables for those that are not given.
func parseWith(a *cli.App, args []string, options []option) (rest []string, err error) {
	if rest, err = parse(args, options); err != nil {
		return nil, err
	}
	for _, o := range options {
		value, ok := "", false
		if o.env != "" && !*o.given {
			value, ok = a.Env(o.env)
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

// parse reads options and gives what is left, in any order as getopt does.
func parse(args []string, options []option) (rest []string, err error) {
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

// notPlayed says which options there are instead.
func notPlayed(name string, options []option) error {
	var known []string
	for _, o := range options {
		if o.instead == "" {
			known = append(known, strings.Join(o.names, " "))
		}
	}
	return exit.Usagef("option %s is not played here: there are %s", name, strings.Join(known, ", "))
}

// listOf is an option whose value is a list with commas.
func listOf(to *[]string, names ...string) option {
	return option{names: names, set: func(v string) error {
		for s := range strings.SplitSeq(v, ",") {
			if s = strings.TrimSpace(s); s != "" {
				*to = append(*to, s)
			}
		}
		return nil
	}}
}

func stringOf(to *string, names ...string) option {
	return option{names: names, set: func(v string) error { *to = v; return nil }}
}

// perhaps is an option whose value may be missing; behind a blank there is none.
func perhaps(o option, given *bool) option {
	o.maybe = given
	return o
}

func boolOf(to *bool, names ...string) option {
	return option{names: names, flag: func() { *to = true }}
}

func ignored(names ...string) option { return option{names: names, flag: func() {}} }

func insteadOf(instead string, names ...string) option {
	return option{names: names, instead: instead}
}
