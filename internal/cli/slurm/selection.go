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
	"gbatch/internal/cli/jobs"
	"gbatch/internal/cli/slurm/getopt"
	"gbatch/internal/client"
	"gbatch/internal/job"
)

// selection selects jobs as squeue and scancel do.
type selection struct {
	ids, users, names, accounts, parts, nodes, states, qos []string

	clusters clusters
	me, all  bool
	steps    bool // jobs are to have the steps that run
	past     bool // states are meant as accounting has them

	keep func(*api.Job) bool // what list keeps
}

// flags are the options of squeue and scancel that say which jobs; the variables
// that say the same begin with SQUEUE_ or SCANCEL_.
func (s *selection) flags(program string) []getopt.Option {
	return []getopt.Option{
		getopt.List(&s.users, "-u", "--user").From(program + pick(program == "SQUEUE", "_USERS", "_USER")), getopt.Bool(&s.me, "--me"),
		getopt.List(&s.states, "-t", "--state", "--states").From(program + pick(program == "SQUEUE", "_STATES", "_STATE")),
		getopt.List(&s.accounts, "-A", "--account").From(program + "_ACCOUNT"), getopt.List(&s.parts, "-p", "--partition").From(program + "_PARTITION"),
		getopt.List(&s.qos, "-q", "--qos").From(program + "_QOS"), getopt.List(&s.nodes, "-w", "--nodelist"), s.clusters.option().From("SLURM_CLUSTERS"),
		getopt.Instead("squeue -o %W shows the licences of jobs, and ginfo --licenses all", "-L", "--licenses"),
		getopt.Ignored("--local", "--federation", "--sibling"),
	}
}

// shortStates are the short words of Slurm's states.
var shortStates = map[string]string{
	"PENDING": "PD", "CONFIGURING": "CF", "RUNNING": "R", "COMPLETING": "CG", "COMPLETED": "CD", "FAILED": "F", "CANCELLED": "CA",
	"SUSPENDED": "S", "TIMEOUT": "TO", "OUT_OF_MEMORY": "OOM", "NODE_FAIL": "NF", "PREEMPTED": "PR", "DEADLINE": "DL",
}

// list gets the jobs. Those that have ended are among them only where their
// state is asked for.
func (s *selection) list(ctx context.Context, a *cli.App) ([]api.Job, error) {
	for i, w := range s.states {
		up := strings.ToUpper(w)
		for long, short := range shortStates {
			if up == short {
				up = long
			}
		}
		if s.states[i] = up; shortStates[up] == "" && up != "ALL" {
			return nil, exit.Usagef("state %s is not known: use PENDING, RUNNING, SUSPENDED, COMPLETING, COMPLETED, FAILED, CANCELLED, TIMEOUT, OUT_OF_MEMORY, NODE_FAIL, PREEMPTED, all, or their short forms", w)
		}
	}
	if err := s.clusters.check(); err != nil {
		return nil, err
	}
	named := s.users
	var err error
	if s.users, err = a.Users(ctx, s.users, s.me); err != nil {
		return nil, err
	}
	nodes, err := jobs.ParseNodes(s.nodes)
	if err != nil {
		return nil, err
	}
	has := func(list []string, v string) bool { return len(list) == 0 || slices.Contains(list, v) }
	s.keep = func(j *api.Job) bool {
		state := stateOf(j)
		if s.past {
			state = accounted(state)
		}
		shown := has(s.states, state) || slices.Contains(s.states, "ALL")
		if len(s.states) == 0 {
			shown = s.all || !j.State.Final()
		}
		return shown && has(s.users, j.User) && has(s.names, j.Name) && has(s.accounts, j.Project) && has(s.qos, cmp.Or(j.QOS, "normal")) &&
			inParts(s.parts, j) &&
			(len(nodes) == 0 || slices.ContainsFunc(j.Nodes, func(n string) bool { return slices.Contains(nodes, n) }))
	}
	list, err := s.fetch(ctx, a)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(j api.Job) bool { return !s.keep(&j) })
	if len(list) == 0 && a.SayUnknown(a.Unknown(ctx, named)) {
		return nil, &exit.Error{Code: exit.Failure}
	}
	return list, nil
}

// fetch gets what may be among them.
func (s *selection) fetch(ctx context.Context, a *cli.App) ([]api.Job, error) {
	if len(s.ids) == 0 {
		l, err := a.Client.Jobs(ctx, client.JobFilter{All: s.all || len(s.states) > 0, User: jobs.Only(s.users), Name: jobs.Only(s.names), Project: jobs.Only(s.accounts), Factors: true, Steps: s.steps})
		if err != nil {
			return nil, err
		}
		return arrays(l.Jobs), nil
	}
	var out []api.Job
	var missing error
	for _, id := range s.ids {
		d, err := a.Client.Job(ctx, id, client.JobOptions{})
		switch {
		case client.IsCode(err, api.CodeNotFound) || client.IsCode(err, api.CodeBadRequest):
			missing = fmt.Errorf("slurm_load_jobs error: %s: %s", invalidID, id)
			continue
		case err != nil:
			return nil, err
		}
		if d.Tasks == nil {
			out = append(out, d.Job)
			continue
		}
		tasks, err := tasksOf(ctx, a, d.Job)
		if err != nil {
			return nil, err
		}
		out = append(out, tasks...)
	}
	if len(out) == 0 && len(s.ids) == 1 { // of several that are not there Slurm says nothing
		return nil, missing
	}
	seen := map[string]bool{} // a task may be named twice, alone and with its array
	return slices.DeleteFunc(out, func(j api.Job) bool {
		again := seen[jobs.ID(&j)]
		seen[jobs.ID(&j)] = true
		return again
	}), nil
}

// tasksOf is an array as Slurm lists it: what waits as one, and each task that
// has begun.
func tasksOf(ctx context.Context, a *cli.App, parent api.Job) ([]api.Job, error) {
	l, err := a.Client.Jobs(ctx, client.JobFilter{All: true, User: parent.User})
	if err != nil {
		return nil, err
	}
	tasks := slices.DeleteFunc(l.Jobs, func(j api.Job) bool { return j.Parent != parent.Number })
	return append(arrays([]api.Job{parent}), tasks...), nil
}

// arrays leaves of each array what waits; the tasks that have begun are jobs of
// their own.
func arrays(list []api.Job) []api.Job {
	list = slices.DeleteFunc(list, func(j api.Job) bool { return j.Tasks != nil && j.Tasks.NumWaiting == 0 })
	for i := range list {
		if list[i].Tasks != nil {
			list[i].State = job.Queued
		}
	}
	return list
}
