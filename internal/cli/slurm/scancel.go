package slurm

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/slurm/getopt"
	"gbatch/internal/job"
	"gbatch/internal/job/indexes"
)

// cancelling is how scancel was asked to do it.
type cancelling struct {
	signal                     string
	quiet, verbose, full, asks bool
}

func (c *cancelling) options() []getopt.Option {
	return []getopt.Option{
		getopt.String(&c.signal, "-s", "--signal"), getopt.Bool(&c.quiet, "-Q", "--quiet"), getopt.Bool(&c.verbose, "-v", "--verbose").From("SCANCEL_VERBOSE"),
		getopt.Bool(&c.full, "-f", "--full").From("SCANCEL_FULL"), getopt.Bool(&c.asks, "-i", "--interactive").From("SCANCEL_INTERACTIVE"),
		getopt.Ignored("-b", "--batch").From("SCANCEL_BATCHED"), getopt.Ignored("-H", "--hurry").From("SCANCEL_HURRY"), getopt.Ignored("-c", "--ctld").From("SCANCEL_CTLD"),
		getopt.Instead("there are no keys of that kind here", "--wckey"), getopt.Instead("squeue -h -o %A -R NAME lists the jobs of a reservation", "-R", "--reservation"),
	}
}

// scancel cancels jobs, or sends them a signal.
func scancel(ctx context.Context, a *cli.App, args []string) error {
	var s selection
	var c cancelling
	ids, err := getopt.ParseWith(a.Env, args, slices.Concat(s.flags("SCANCEL"), c.options(), []getopt.Option{getopt.List(&s.names, "-n", "--name", "--jobname").From("SCANCEL_NAME")}))
	if err != nil {
		return err
	}
	if c.signal != "" && c.full {
		return exit.Usagef("option -f is not played here with -s: a signal goes to the first of a job's processes that handles it; leave -f out")
	}
	ids = jobList(ids)
	if len(ids) == 0 && !s.filters() {
		return exit.Usagef("no jobs were named: scancel 12 13, scancel 12_3, or scancel --me -t PENDING")
	}
	for _, id := range ids { // before anything is done, so that a slip cancels nothing
		if !isID(id) {
			return &exit.Error{Code: exit.Failure, Err: fmt.Errorf("error: Invalid job id %s", id)}
		}
	}
	if s.filters() || c.asks {
		s.ids = ids
		list, err := s.list(ctx, a)
		if err != nil {
			return err
		}
		if ids, err = c.chosen(a, list); err != nil {
			return err
		}
	}
	if len(ids) == 0 {
		return nil
	}
	action := "cancel"
	if c.signal != "" {
		action = "signal"
	}
	if c.verbose {
		for _, id := range ids {
			a.Say("scancel: %s job %s", pick(c.signal == "", "Terminating", "Signal "+c.signal+" to"), id)
		}
	}
	r, err := a.Client.Action(ctx, action, &api.ActionRequest{IDs: ids, Signal: signalName(c.signal)})
	if err != nil {
		return err
	}
	return c.report(a, r)
}

// chosen are those of the jobs that are to be cancelled.
func (c *cancelling) chosen(a *cli.App, list []api.Job) (ids []string, err error) {
	for _, j := range list {
		id, yes := cmp.Or(j.ID, fmt.Sprint(j.Number)), true
		if j.Tasks != nil { // what waits of it; the others are listed too
			id = fmt.Sprintf("%d_[%s]", j.Number, j.Tasks.Waiting)
		}
		if c.asks {
			if yes, err = a.Ask(fmt.Sprintf("Cancel job_id=%s name=%s partition=%s", id, j.Name, partitionOf(&j))); err != nil {
				return nil, err
			}
		}
		if yes {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// report says what could not be done. A job that is not there is no failure, as
// what was wanted holds.
func (c *cancelling) report(a *cli.App, r *api.ActionResponse) error {
	failed := false
	for _, x := range r.Results {
		if x.Error == nil {
			continue
		}
		missing := x.Error.Code == api.CodeNotFound
		failed = failed || !missing
		if !c.quiet {
			a.Say("scancel: error: Kill job error on job id %s: %s", x.ID, pick(missing, invalidID, x.Error.Error()))
		}
	}
	if failed {
		return &exit.Error{Code: exit.Failure}
	}
	return nil
}

// invalidID is Slurm's text for a job that is not there; tools look for it.
const invalidID = "Invalid job id specified"

// signalName is a signal's name without SIG, of its number too.
func signalName(text string) string {
	if n, err := strconv.Atoi(text); err == nil {
		text = unix.SignalName(syscall.Signal(n))
	}
	return strings.TrimPrefix(strings.ToUpper(text), "SIG")
}

// isID says whether a text may name a job, tasks of an array or a step, as 12,
// 12_3, 12_[3-9] and 12.0.
func isID(text string) bool {
	text, step, isStep := strings.Cut(text, ".")
	if isStep {
		if _, err := strconv.ParseUint(step, 10, 32); err != nil {
			return false
		}
	}
	number, tasks, isArray := strings.Cut(text, "_")
	if isArray {
		list, bracket := strings.CutPrefix(tasks, "[")
		list, closed := strings.CutSuffix(list, "]")
		_, err := indexes.Parse(list)
		if err != nil || bracket != closed || !bracket && strings.ContainsAny(list, ",-:") {
			return false
		}
	}
	_, ok := job.ParseNumber(number)
	return ok
}

// jobList splits lists of jobs at their commas, but not within brackets.
func jobList(args []string) (ids []string) {
	for _, arg := range args {
		depth, from := 0, 0
		for i, r := range arg + "," {
			switch {
			case r == '[':
				depth++
			case r == ']':
				depth--
			case r == ',' && (depth <= 0 || i == len(arg)): // also behind a bracket that nobody closed
				if id := strings.TrimSpace(arg[from:i]); id != "" {
					ids = append(ids, id)
				}
				from = i + 1
			}
		}
	}
	return ids
}

// filters says whether jobs are chosen by what they are.
func (s *selection) filters() bool {
	return s.me || len(s.users)+len(s.names)+len(s.states)+len(s.accounts)+len(s.parts)+len(s.nodes)+len(s.qos) > 0
}
