package srun

import (
	"fmt"
	"slices"
	"strings"
)

// options are what the command line and the environment say.
type options struct {
	q        launchRequest
	bare     bool // there are no variables of the job
	jobNodes int  // those that they say it has
	jobCPUs  int  // of each of its tasks

	args      []string
	multi     bool
	label     bool
	unbuffer  bool
	export    string // empty: all
	dir       string
	in        string
	out       string
	errs      string
	appends   bool
	killBad   bool
	waitS     int
	limitS    int64
	mpi       string
	pty       bool
	layout    bool // of sattach: say where the tasks are, and no more
	quitOnInt bool
	attended  bool    // somebody may press Ctrl-C
	beside    *uint32 // a step whose tasks these are to be with; nil: none
	verbose   int
	quiet     int
	box       container
	warned    []string // notes for -v
}

// option is one of srun's. Set gets its value; of a flag "".
type option struct {
	long  string
	short byte
	takes byte // 0: a flag; '=': a value; '?': perhaps one, joined to it
	set   func(o *options, v string) error
	env   string // the variables that say the same: the first that is there counts
}

// harmless is an option whose effect a step has in any case, or which changes
// nothing that a program sees.
func harmless(long string, short byte, takes byte) option {
	return option{long: long, short: short, takes: takes, set: func(*options, string) error { return nil }}
}

// instead is an option that is refused, with what to do.
func instead(long string, short byte, takes byte, hint string) option {
	return option{long: long, short: short, takes: takes, set: func(*options, string) error { return fmt.Errorf("is not supported: %s", hint) }}
}

func flag(long string, short byte, env string, set func(o *options)) option {
	return option{long: long, short: short, env: env, set: func(o *options, v string) error {
		if v == "" || v == "1" || strings.EqualFold(v, "yes") || strings.EqualFold(v, "true") {
			set(o)
		}
		return nil
	}}
}

// usage is a command line that cannot be understood.
type usage struct{ text string }

func (u usage) Error() string { return u.text }

// parse reads srun's command line, and the variables that say the same.
func parse(args []string, env func(string) (string, bool)) (*options, error) {
	o, err := parseBy(table(), args, env)
	if err == nil && slices.Contains(o.args, Parts) {
		err = usage{PartsRefused}
	}
	return o, err
}

// Parts is the word by which Slurm tells the parts of a step, or of a job, from each
// other that ask for different things, also among the arguments of a program.
const Parts = ":"

// PartsRefused says what to write instead.
const PartsRefused = `":" begins a part that asks for other things, and all tasks of a step ask for the same here: name each task's program in a file for --multi-prog, or start steps beside each other by "srun ... & srun ... & wait"`

// parseBy reads a command line, by the rules of getopt_long, up to the first word
// that is no option.
func parseBy(all []option, args []string, env func(string) (string, bool)) (*options, error) {
	o := &options{dir: "", in: "all", out: "all"}
	for _, opt := range all {
		for name := range strings.FieldsSeq(opt.env) {
			if v, ok := env(name); ok {
				if err := opt.set(o, v); err != nil {
					return nil, usage{fmt.Sprintf("%s=%s: %v", name, v, err)}
				}
				break
			}
		}
	}
	o.ofJob(env)
	for i := 0; i < len(args); i++ {
		w := args[i]
		switch {
		case w == "--":
			o.args = args[i+1:]
			return o, nil
		case strings.HasPrefix(w, "--"):
			used, err := o.long(all, w, args[i+1:])
			if err != nil {
				return nil, err
			}
			i += used
		case len(w) > 1 && w[0] == '-':
			used, err := o.short(all, w[1:], args[i+1:])
			if err != nil {
				return nil, err
			}
			i += used
		default:
			o.args = args[i:]
			return o, nil
		}
	}
	return o, nil
}

// long reads --name, --name=value or --name value. A name may be cut short as
// long as it is one option's alone.
func (o *options) long(all []option, word string, rest []string) (used int, err error) {
	name, value, given := strings.Cut(word[2:], "=")
	at := slices.IndexFunc(all, func(x option) bool { return x.long == name })
	if at < 0 {
		for k, x := range all {
			if !strings.HasPrefix(x.long, name) {
				continue
			}
			if at >= 0 {
				return 0, usage{fmt.Sprintf("option '%s' is ambiguous", word)}
			}
			at = k
		}
	}
	if at < 0 {
		return 0, usage{fmt.Sprintf("unrecognized option '%s'", word)}
	}
	x := all[at]
	switch {
	case x.takes == 0 && given:
		return 0, usage{fmt.Sprintf("option '--%s' doesn't allow an argument", x.long)}
	case x.takes == '=' && !given:
		if len(rest) == 0 {
			return 0, usage{fmt.Sprintf("option '--%s' requires an argument", x.long)}
		}
		value, used = rest[0], 1
	}
	if err := x.set(o, value); err != nil {
		return 0, usage{fmt.Sprintf("--%s%s: %v", x.long, shown(value), err)}
	}
	return used, nil
}

func shown(v string) string {
	if v == "" {
		return ""
	}
	return "=" + v
}

// short reads letters behind one dash, of which the last may have a value.
func (o *options) short(all []option, letters string, rest []string) (used int, err error) {
	for k := 0; k < len(letters); k++ {
		at := slices.IndexFunc(all, func(x option) bool { return x.short == letters[k] })
		if at < 0 {
			return 0, usage{fmt.Sprintf("invalid option -- '%c'", letters[k])}
		}
		x, value := all[at], ""
		if x.takes != 0 {
			value = letters[k+1:]
			k = len(letters)
			if x.takes == '=' && value == "" {
				if len(rest) == 0 {
					return 0, usage{fmt.Sprintf("option requires an argument -- '%c'", x.short)}
				}
				value, used = rest[0], 1
			}
		}
		if err := x.set(o, value); err != nil {
			return 0, usage{fmt.Sprintf("-%c %s: %v", x.short, value, err)}
		}
	}
	return used, nil
}

// Takes says of an option's name, as --nodes or -N, whether srun has it in a step,
// and whether it has a value: by '=' one that may be the next word, by '?' one that
// may be joined to it.
func Takes(name string) (takes byte, known bool) {
	at := slices.IndexFunc(everyOption, func(x option) bool { return "--"+x.long == name || x.short != 0 && "-"+string(x.short) == name })
	if at < 0 {
		return 0, false
	}
	return everyOption[at].takes, true
}

var everyOption = table()
