package slurm

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
)

// scancel cancels jobs, or sends them a signal.
func scancel(ctx context.Context, a *cli.App, args []string) error {
	var s selection
	signal, quiet := "", false
	flags := append(s.flags(), listOf(&s.names, "-n", "--name", "--jobname"), stringOf(&signal, "--signal", "-s"), boolOf(&quiet, "-Q", "-q", "--quiet"),
		ignored("-v", "--verbose"), ignored("-f", "--full"), insteadOf("a signal goes to the job's program: leave it out", "-b", "--batch"),
		insteadOf("use gcancel, which asks", "--interactive"))
	flags = slices.DeleteFunc(flags, func(f option) bool { return f.instead != "" && slices.Contains(f.names, "-s") }) // squeue's
	ids, err := parse(args, flags)
	if err != nil {
		return err
	}
	if len(ids) == 0 && !s.filters() {
		return exit.Usagef("no jobs were named: scancel 12 13, scancel 12_3, or scancel --me -t PENDING")
	}
	if s.filters() {
		s.ids = ids
		list, err := s.list(ctx, a)
		if err != nil {
			return err
		}
		ids = nil
		for _, j := range list {
			ids = append(ids, cmp.Or(j.ID, fmt.Sprint(j.Number)))
		}
	}
	if len(ids) == 0 {
		return nil
	}
	action := "cancel"
	if signal != "" {
		action = "signal"
	}
	r, err := a.Client.Action(ctx, action, &api.ActionRequest{IDs: ids, Signal: strings.TrimPrefix(strings.ToUpper(signal), "SIG")})
	if err != nil {
		return err
	}
	failed := false
	for _, x := range r.Results {
		if x.Error != nil {
			failed = true
			if !quiet {
				a.Say("scancel: error: Kill job error on job id %s: %v", x.ID, x.Error)
			}
		}
	}
	if failed {
		return &exit.Error{Code: exit.Failure}
	}
	return nil
}

// filters says whether jobs are chosen by what they are.
func (s *selection) filters() bool {
	return s.me || len(s.users)+len(s.names)+len(s.states)+len(s.accounts)+len(s.parts)+len(s.nodes) > 0
}
