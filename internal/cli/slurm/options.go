package slurm

import (
	"slices"
	"strings"

	"gbatch/internal/cli/exit"
)

// option is an option of one of these commands, which may have several names.
type option struct {
	names   []string // --user, -u
	set     func(value string) error
	flag    func() // instead of set: it takes no value
	instead string // instead of both: it is not supported
}

// parse reads options and gives what is left, in any order as getopt does.
func parse(args []string, options []option) (rest []string, err error) {
	find := func(name string) (option, error) {
		i := slices.IndexFunc(options, func(f option) bool { return slices.Contains(f.names, name) })
		if i < 0 {
			var known []string
			for _, f := range options {
				if f.instead == "" {
					known = append(known, strings.Join(f.names, " "))
				}
			}
			return option{}, exit.Usagef("option %s is not played here: there are %s", name, strings.Join(known, ", "))
		}
		if options[i].instead != "" {
			return option{}, exit.Usagef("option %s is not played here: %s", name, options[i].instead)
		}
		return options[i], nil
	}
	for len(args) > 0 {
		w := args[0]
		args = args[1:]
		if w == "--" {
			return append(rest, args...), nil
		}
		if !strings.HasPrefix(w, "-") || w == "-" {
			rest = append(rest, w)
			continue
		}
		name, value, given := strings.Cut(w, "=")
		for short := !strings.HasPrefix(w, "--"); ; {
			if short {
				name, value = w[:2], w[2:]
				given = value != ""
			}
			f, err := find(name)
			if err != nil {
				return nil, err
			}
			if f.flag != nil {
				f.flag()
				if short && given { // -hX: h, then X
					w = "-" + value
					continue
				}
				if given {
					return nil, exit.Usagef("option %s takes no value", name)
				}
				break
			}
			if !given {
				if len(args) == 0 {
					return nil, exit.Usagef("option %s needs a value", name)
				}
				value, args = args[0], args[1:]
			}
			if err := f.set(value); err != nil {
				return nil, err
			}
			break
		}
	}
	return rest, nil
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

func boolOf(to *bool, names ...string) option {
	return option{names: names, flag: func() { *to = true }}
}

func ignored(names ...string) option { return option{names: names, flag: func() {}} }

func insteadOf(instead string, names ...string) option {
	return option{names: names, instead: instead}
}
