package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"gbatch/internal/client"
)

// The commands of Slurm that scripts and tools call, over the same client as
// ours. What they print is what such programs read; what they do not know is an
// error that names what to use instead.

// slurmCommands are by the name under which the program is called.
var slurmCommands = map[string]func(context.Context, *App, []string) error{
	"sbatch": sbatch, "squeue": squeue, "scancel": scancel, "sinfo": sinfo, "sacct": sacct, "srun": srun,
}

// Slurm is the program that plays them.
func Slurm(args []string) {
	name := filepath.Base(args[0])
	args = args[1:]
	if slurmCommands[name] == nil && len(args) > 0 { // gslurm squeue ...
		name, args = args[0], args[1:]
	}
	app := &App{Out: os.Stdout, Err: os.Stderr, In: os.Stdin, Now: time.Now, Sleep: client.Sleep, Term: DetectTerminal(), Measure: DetectTerminal}
	os.Exit(app.slurm(name, args))
}

func (a *App) slurm(name string, args []string) int {
	p := Program{Name: name, Retry: name == "sbatch", Failure: 1}
	run := slurmCommands[name]
	switch {
	case run == nil:
		return a.fail(Program{Name: "gslurm"}, usageError("plays sbatch, squeue, scancel, sinfo and sacct, by whose names it is called: gslurm squeue --me"))
	case slices.Contains(args, "--version") || slices.Contains(args, "-V") && name != "srun":
		fmt.Fprintln(a.Out, "slurm-gbatch "+Version)
		return ExitOK
	}
	if err := a.connect(p, &Connection{Timeout: 30 * time.Second}); err != nil {
		return a.fail(p, err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return a.fail(p, run(ctx, a, args))
}

func srun(context.Context, *App, []string) error {
	return usageError("a job step outside of a job is not played. Use gsubmit --wait --image NAME -- COMMAND for a job, gsubmit --interactive for a shell, " +
		"gexec JOB -- COMMAND in a job that runs; inside of a batch script, srun works")
}

// slurmFlag is an option of one of these commands.
type slurmFlag struct {
	names   []string // --user, -u
	set     func(value string) error
	flag    func() // instead of set: it takes no value
	instead string // instead of both: it is not supported
}

// slurmFlags reads options and gives what is left, in any order as getopt does.
func slurmFlags(args []string, flags []slurmFlag) (rest []string, err error) {
	find := func(name string) (slurmFlag, error) {
		i := slices.IndexFunc(flags, func(f slurmFlag) bool { return slices.Contains(f.names, name) })
		if i < 0 {
			var known []string
			for _, f := range flags {
				if f.instead == "" {
					known = append(known, strings.Join(f.names, " "))
				}
			}
			return slurmFlag{}, usageError("option %s is not played here: there are %s", name, strings.Join(known, ", "))
		}
		if flags[i].instead != "" {
			return slurmFlag{}, usageError("option %s is not played here: %s", name, flags[i].instead)
		}
		return flags[i], nil
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
					return nil, usageError("option %s takes no value", name)
				}
				break
			}
			if !given {
				if len(args) == 0 {
					return nil, usageError("option %s needs a value", name)
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
func listOf(to *[]string, names ...string) slurmFlag {
	return slurmFlag{names: names, set: func(v string) error {
		for s := range strings.SplitSeq(v, ",") {
			if s = strings.TrimSpace(s); s != "" {
				*to = append(*to, s)
			}
		}
		return nil
	}}
}

func stringOf(to *string, names ...string) slurmFlag {
	return slurmFlag{names: names, set: func(v string) error { *to = v; return nil }}
}

func boolOf(to *bool, names ...string) slurmFlag {
	return slurmFlag{names: names, flag: func() { *to = true }}
}

func ignoredFlag(names ...string) slurmFlag { return slurmFlag{names: names, flag: func() {}} }

func insteadOf(instead string, names ...string) slurmFlag {
	return slurmFlag{names: names, instead: instead}
}

// partitions are clusters, by number.
func partitions(words []string) ([]int, error) {
	var out []int
	for _, w := range words {
		n, err := strconv.Atoi(w)
		if err != nil || n < 1 {
			return nil, usageError("partition %q: here they are clusters and have numbers; see ginfo", w)
		}
		out = append(out, n)
	}
	return out, nil
}
