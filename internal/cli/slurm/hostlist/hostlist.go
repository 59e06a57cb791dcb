// Package hostlist writes lists of nodes, as n[1-3],n7, out and back, as scontrol does for
// scripts that ask it.
package hostlist

import (
	"fmt"
	"slices"

	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/human"
	"gbatch/internal/job/nodelist"
)

// Names prints the names of a list of nodes, one a line; without a list,
// those of the job in which it runs.
func Names(a *cli.App, args []string) error {
	names, err := hostArg(a, args)
	if err != nil {
		return err
	}
	for _, n := range names {
		fmt.Fprintln(a.Out, n)
	}
	return nil
}

// List prints names as a list with ranges.
func List(a *cli.App, args []string, sorted bool) error {
	names, err := hostArg(a, args)
	if err != nil {
		return err
	}
	if sorted {
		slices.Sort(names)
	}
	_, err = fmt.Fprintln(a.Out, human.Hosts(names))
	return err
}

func hostArg(a *cli.App, args []string) ([]string, error) {
	list := ""
	switch len(args) {
	case 0:
		var ok bool
		if list, ok = a.Env("SLURM_JOB_NODELIST"); !ok {
			return nil, exit.Usagef("no list of nodes was given, and SLURM_JOB_NODELIST is not set")
		}
	case 1:
		list = args[0]
	default:
		return nil, exit.Usagef("give one list of nodes, as n[1-3],n7")
	}
	names, err := nodelist.Parse(list)
	if err != nil {
		return nil, exit.Usagef("node list %q: %w", list, err)
	}
	return names, nil
}
