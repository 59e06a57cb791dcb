package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/client"
)

// slurmJobs selects jobs as squeue and scancel do.
type slurmJobs struct {
	ids, users, names, accounts, parts, nodes, states []string
	me, all                                           bool

	keep func(*api.Job) bool // what list keeps
}

func (s *slurmJobs) flags() []slurmFlag {
	return []slurmFlag{
		listOf(&s.users, "-u", "--user"), boolOf(&s.me, "--me"), listOf(&s.states, "-t", "--state", "--states"),
		listOf(&s.accounts, "-A", "--account"), listOf(&s.parts, "-p", "--partition"), listOf(&s.nodes, "-w", "--nodelist"),
		insteadOf("choose the controller with GBATCH_CONTROLLER", "-M", "--clusters", "--cluster"),
		insteadOf("use gqueue, which has columns of its own: gqueue --help", "-O", "--Format", "-l", "--long", "-S", "--sort", "-i", "--iterate"),
		insteadOf("use gqueue --json", "--json", "--yaml"), insteadOf("use gqueue, or gqueue explain JOB", "--start"),
		insteadOf("jobs have no steps here; use gqueue show JOB", "-s", "--steps"),
		insteadOf("use gadm reservations", "-R", "--reservation"), insteadOf("use gqueue", "-L", "--licenses"),
	}
}

// slurmShort are the short words of Slurm's states.
var slurmShort = map[string]string{
	"PENDING": "PD", "CONFIGURING": "CF", "RUNNING": "R", "COMPLETING": "CG", "COMPLETED": "CD", "FAILED": "F", "CANCELLED": "CA",
	"TIMEOUT": "TO", "OUT_OF_MEMORY": "OOM", "NODE_FAIL": "NF", "PREEMPTED": "PR", "DEADLINE": "DL",
}

// list gets the jobs. Those that have ended are among them only where their
// state is asked for.
func (s *slurmJobs) list(ctx context.Context, a *App) ([]api.Job, error) {
	for i, w := range s.states {
		up := strings.ToUpper(w)
		for long, short := range slurmShort {
			if up == short {
				up = long
			}
		}
		if s.states[i] = up; slurmShort[up] == "" && up != "ALL" {
			return nil, usageError("state %s is not known: use PENDING, RUNNING, COMPLETING, COMPLETED, FAILED, CANCELLED, TIMEOUT, OUT_OF_MEMORY, NODE_FAIL, PREEMPTED, all, or their short forms", w)
		}
	}
	clusters, err := partitions(s.parts)
	if err != nil {
		return nil, err
	}
	if s.me {
		me, err := a.me(ctx)
		if err != nil {
			return nil, err
		}
		s.users = append(s.users, me)
	}
	var nodes []string
	for _, w := range s.nodes {
		more, err := expandHosts(w)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, more...)
	}
	has := func(list []string, v string) bool { return len(list) == 0 || slices.Contains(list, v) }
	s.keep = func(j *api.Job) bool {
		shown := has(s.states, stateAs("slurm", j)) || slices.Contains(s.states, "ALL")
		if len(s.states) == 0 {
			shown = s.all || !j.State.Final()
		}
		return shown && has(s.users, j.User) && has(s.names, j.Name) && has(s.accounts, j.Project) &&
			(len(clusters) == 0 || slices.Contains(clusters, j.Cluster)) &&
			(len(nodes) == 0 || slices.ContainsFunc(j.Nodes, func(n string) bool { return slices.Contains(nodes, n) }))
	}
	jobs, err := s.fetch(ctx, a)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(jobs, func(j api.Job) bool { return !s.keep(&j) }), nil
}

// fetch gets what may be among them.
func (s *slurmJobs) fetch(ctx context.Context, a *App) ([]api.Job, error) {
	if len(s.ids) == 0 {
		l, err := a.Client.Jobs(ctx, client.JobFilter{All: s.all || len(s.states) > 0, User: single(s.users), Name: single(s.names), Project: single(s.accounts)})
		if err != nil {
			return nil, err
		}
		return l.Jobs, nil
	}
	var out []api.Job
	var missing error
	for _, id := range s.ids {
		d, err := a.Client.Job(ctx, id, client.JobOptions{})
		switch {
		case client.IsCode(err, api.CodeNotFound) || client.IsCode(err, api.CodeBadRequest):
			missing = fmt.Errorf("error: Invalid job id specified: %s", id)
			continue
		case err != nil:
			return nil, err
		}
		if d.Tasks == nil {
			out = append(out, d.Job)
			continue
		}
		tasks, err := a.tasksOf(ctx, d.Job)
		if err != nil {
			return nil, err
		}
		out = append(out, tasks...)
	}
	if len(out) == 0 {
		return nil, missing
	}
	return out, nil
}

// tasksOf is an array as Slurm lists it: what waits as one, and each task that
// has begun.
func (a *App) tasksOf(ctx context.Context, parent api.Job) ([]api.Job, error) {
	l, err := a.Client.Jobs(ctx, client.JobFilter{All: true, User: parent.User})
	if err != nil {
		return nil, err
	}
	out := slices.DeleteFunc(l.Jobs, func(j api.Job) bool { return j.Parent != parent.Number })
	if parent.Tasks.NumWaiting > 0 {
		parent.State = "QUEUED"
		out = append([]api.Job{parent}, out...)
	}
	return out, nil
}

// squeueColumns are squeue's, with its titles.
var squeueColumns = func() columnSet[api.Job] {
	titles := map[byte]string{
		'i': "JOBID", 'a': "ACCOUNT", 'l': "TIME_LIMIT", 'L': "TIME_LEFT", 'R': "NODELIST(REASON)", 'm': "MIN_MEMORY", 'S': "START_TIME",
		'e': "END_TIME", 'V': "SUBMIT_TIME", 'P': "PARTITION", 'F': "ARRAY_JOB_ID", 'K': "ARRAY_TASK_ID",
	}
	cells := map[byte]func(v *view, b []byte, j *api.Job) []byte{
		't': func(_ *view, b []byte, j *api.Job) []byte { return append(b, slurmShort[stateAs("slurm", j)]...) },
		'b': func(_ *view, b []byte, j *api.Job) []byte {
			if j.GPUs == 0 {
				return append(b, "N/A"...)
			}
			return strconv.AppendFloat(append(b, "gres/gpu:"...), j.GPUs, 'f', -1, 64)
		},
		'S': func(v *view, b []byte, j *api.Job) []byte { return slurmMoment(b, startOf(j)) },
		'e': func(v *view, b []byte, j *api.Job) []byte { return slurmMoment(b, endOf(j)) },
		'V': func(v *view, b []byte, j *api.Job) []byte { return slurmMoment(b, j.Submitted) },
		'l': func(_ *view, b []byte, j *api.Job) []byte {
			if j.LimitS <= 0 {
				return append(b, "UNLIMITED"...)
			}
			return slurmDuration(b, j.LimitS)
		},
		'R': func(_ *view, b []byte, j *api.Job) []byte {
			if len(j.Nodes) > 0 && !j.State.Pending() {
				return append(b, compressHosts(j.Nodes)...)
			}
			return append(append(append(b, '('), firstWord(j.Reason, "None")...), ')')
		},
		'r': func(_ *view, b []byte, j *api.Job) []byte { return append(b, firstWord(j.Reason, "None")...) },
		'N': func(_ *view, b []byte, j *api.Job) []byte { return append(b, compressHosts(j.Nodes)...) },
	}
	var out columnSet[api.Job]
	for _, c := range columns {
		if c.letter <= ' ' { // not Slurm's
			continue
		}
		if t := titles[c.letter]; t != "" {
			c.title = t
		}
		if f := cells[c.letter]; f != nil {
			c.cell = f
		}
		out = append(out, c)
	}
	return out
}()

func firstWord(s, none string) string {
	if s == "" {
		return none
	}
	return s
}

func slurmMoment(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(b, "N/A"...)
	}
	return t.Local().AppendFormat(b, "2006-01-02T15:04:05")
}

func squeue(ctx context.Context, a *App, args []string) error {
	var s slurmJobs
	format, noHeader := "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R", false
	rest, err := slurmFlags(args, append(s.flags(), listOf(&s.ids, "-j", "--jobs", "--job"), listOf(&s.names, "-n", "--name"),
		stringOf(&format, "-o", "--format"), boolOf(&noHeader, "-h", "--noheader"), ignoredFlag("-a", "--all"), ignoredFlag("-r", "--array"), ignoredFlag("-v", "--verbose")))
	if err != nil {
		return err
	}
	s.ids = append(s.ids, rest...)
	fields, err := parseFormat(format, squeueColumns)
	if err != nil {
		return err
	}
	jobs, err := s.list(ctx, a)
	if err != nil {
		return err
	}
	return writeFormat(a.Out, fields, jobs, &view{now: a.Now(), as: "slurm"}, !noHeader)
}

// scancel cancels jobs, or sends them a signal.
func scancel(ctx context.Context, a *App, args []string) error {
	var s slurmJobs
	signal, quiet := "", false
	flags := append(s.flags(), listOf(&s.names, "-n", "--name", "--jobname"), stringOf(&signal, "--signal", "-s"), boolOf(&quiet, "-Q", "-q", "--quiet"),
		ignoredFlag("-v", "--verbose"), ignoredFlag("-f", "--full"), insteadOf("a signal goes to the job's program: leave it out", "-b", "--batch"),
		insteadOf("use gcancel, which asks", "--interactive"))
	flags = slices.DeleteFunc(flags, func(f slurmFlag) bool { return f.instead != "" && slices.Contains(f.names, "-s") }) // squeue's
	ids, err := slurmFlags(args, flags)
	if err != nil {
		return err
	}
	if len(ids) == 0 && !s.me && len(s.users)+len(s.names)+len(s.states)+len(s.accounts)+len(s.parts)+len(s.nodes) == 0 {
		return usageError("no jobs were named: scancel 12 13, scancel 12_3, or scancel --me -t PENDING")
	}
	if s.me || len(s.users)+len(s.names)+len(s.states)+len(s.accounts)+len(s.parts)+len(s.nodes) > 0 {
		s.ids = ids
		jobs, err := s.list(ctx, a)
		if err != nil {
			return err
		}
		ids = nil
		for _, j := range jobs {
			ids = append(ids, firstWord(j.ID, fmt.Sprint(j.Number)))
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
				a.say("scancel: error: Kill job error on job id %s: %v", x.ID, x.Error)
			}
		}
	}
	if failed {
		return &exitError{code: ExitFailure}
	}
	return nil
}
