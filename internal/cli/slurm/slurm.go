// Package slurm plays Slurm's commands for scripts and tools that call those, over
// the same client as our own commands. What they print is what such programs read,
// in the forms of the release that is named in version; an option that they do not
// know is an error that names what to use instead.
package slurm

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"gbatch/internal/cli"
	"gbatch/internal/cli/allocation"
	"gbatch/internal/cli/exit"
)

// commands are by the name under which the program is called.
var commands = map[string]func(context.Context, *cli.App, []string) error{
	"sbatch": sbatch, "squeue": squeue, "scancel": scancel, "sinfo": sinfo, "sacct": sacct, "srun": allocation.Srun, "salloc": allocation.Salloc, "sattach": allocation.Sattach, "sbcast": allocation.Sbcast, "scontrol": scontrol, "sacctmgr": sacctmgr,
	"sprio": sprio, "sshare": sshare, "sdiag": sdiag, "seff": seff, "sstat": sstat,
}

// Main runs the command whose name the program, or its first argument, has.
func Main(args []string) {
	name := filepath.Base(args[0])
	args = args[1:]
	if commands[name] == nil && len(args) > 0 { // gslurm squeue ...
		name, args = args[0], args[1:]
	}
	if name == "sbatch" {
		a := cli.Brief()
		a.Exit(play(a, "", name, args))
	}
	a := cli.New()
	runtime.SetDefaultGOMAXPROCS() // the program begins with one
	a.Exit(play(a, "", name, args))
}

// Inside runs the command whose name the program has, in the container of a job; the
// API is served there at a socket.
func Inside(args []string, socket, id string) {
	a := cli.New()
	a.Within = id
	a.Exit(play(a, socket, filepath.Base(args[0]), args[1:]))
}

func play(a *cli.App, at, name string, args []string) int {
	run := commands[name]
	switch {
	case run == nil:
		return a.Finish(cli.Program{Name: "gslurm"}, exit.Usagef("plays %s, by whose names it is called: gslurm squeue --me", strings.Join(slices.Sorted(maps.Keys(commands)), ", ")))
	case a.Within != "" && name == "salloc":
		return a.Finish(cli.Program{Name: name, Failure: 1}, exit.Usagef("salloc is not there inside of a job: srun starts tasks in this one, and sbatch submits another one"))
	case slices.Contains(optionsOf(name, args), "--version") || slices.Contains(optionsOf(name, args), "-V"):
		fmt.Fprintln(a.Out, "slurm "+version)
		return exit.OK
	}
	p := cli.Program{Name: name, Retry: name == "sbatch", Failure: 1}
	return a.Do(p, &cli.Connection{Controller: at, Timeout: 30 * time.Second}, func(ctx context.Context) error { return run(ctx, a, args) })
}

// optionsOf are the arguments that may be options of the command: what follows the
// program of srun and salloc is the program's.
func optionsOf(name string, args []string) []string {
	if name != "srun" && name != "salloc" {
		return args
	}
	for i, w := range args {
		if !strings.HasPrefix(w, "-") {
			return args[:i]
		}
	}
	return args
}
