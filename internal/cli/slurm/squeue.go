package slurm

import (
	"context"
	"fmt"
	"slices"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/jobs"
	"gbatch/internal/cli/slurm/getopt"
	"gbatch/internal/cli/table"
	"gbatch/internal/client"
	"gbatch/internal/job"
	"gbatch/internal/job/indexes"
)

// What squeue prints where it is not told what.
const (
	squeueFormat = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
	squeueLong   = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"
	squeueStart  = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R"
	squeueStates = "%.18i %.9T"
	squeueOrder  = "P,t,-p"
)

// queueView is how squeue was asked to list.
type queueView struct {
	format, long, order               string
	noHeader, wide, start, each, json bool
	only, bySteps                     bool
	unit                              byte     // of memory
	reservations                      []string // none: whatever they have
	named                             []string // steps, of all that run
}

func (q *queueView) options() []getopt.Option {
	return []getopt.Option{
		getopt.String(&q.format, "-o", "--format").From("SQUEUE_FORMAT"), getopt.String(&q.long, "-O", "--Format").From("SQUEUE_FORMAT2"),
		getopt.String(&q.order, "-S", "--sort").From("SQUEUE_SORT"), getopt.Bool(&q.noHeader, "-h", "--noheader"), getopt.Bool(&q.wide, "-l", "--long"),
		getopt.Bool(&q.start, "--start"), getopt.Bool(&q.each, "-r", "--array").From("SQUEUE_ARRAY"), getopt.Bool(&q.json, "--json"), getopt.Bool(&q.only, "--only-job-state"),
		getopt.Ignored("-a", "--all", "--hide").From("SQUEUE_ALL"), getopt.Ignored("-v", "--verbose"), getopt.Ignored("-P", "--priority").From("SQUEUE_PRIORITY"),
		getopt.Instead("use --json", "--yaml"), getopt.Instead("use watch -n SECONDS squeue ...", "-i", "--iterate"),
		getopt.Do(func() { q.unit = asKept }, "--noconvert"), getopt.Ignored("--array-unique"), getopt.List(&q.reservations, "-R", "--reservation"),
		getopt.Perhaps(getopt.List(&q.named, "-s", "--steps", "--step"), &q.bySteps),
	}
}

// layout is what is printed of each job.
func (q *queueView) layout() (table.Layout[row], error) {
	switch {
	case q.format == "%all":
		return squeueColumns.Format(allLetters)
	case q.format != "":
		return squeueColumns.Format(q.format)
	case q.long != "":
		return squeueColumns.Long(q.long)
	case q.start:
		return squeueColumns.Format(squeueStart)
	case q.only:
		return squeueColumns.Format(squeueStates)
	case q.wide:
		return squeueColumns.Format(squeueLong)
	}
	return squeueColumns.Format(squeueFormat)
}

// allLetters is Slurm's %all.
const allLetters = "%a|%b|%c|%d|%e|%f|%g|%h|%i|%j|%k|%l|%m|%n|%o|%p|%q|%r|%t|%u|%v|%w|%x|%y|%z|%A|%B|%C|%D|%E|%F|%G|%H|%I|%J|%K|%L|%M|%N|%O|%P|%Q|%R|%S|%T|%U|%V|%W|%X|%Y|%Z"

func squeue(ctx context.Context, a *cli.App, args []string) error {
	var s selection
	q := queueView{order: squeueOrder}
	rest, err := getopt.ParseWith(a.Env, args, slices.Concat(s.flags("SQUEUE"), q.options(),
		[]getopt.Option{getopt.List(&s.ids, "-j", "--jobs", "--job"), getopt.List(&s.names, "-n", "--name").From("SQUEUE_NAMES")}))
	if err != nil {
		return err
	}
	s.ids = append(s.ids, rest...)
	s.all = s.all || q.json && len(s.ids) > 0 && len(s.states) == 0 // as with Slurm, which has jobs that have ended there for a while
	if q.start && len(s.states) == 0 {
		s.states = []string{"PENDING"}
	}
	if q.bySteps {
		q.order = pick(q.order == squeueOrder, stepsOrder, q.order)
		return q.steps(ctx, a, &s, q.named)
	}
	form, err := q.layout()
	if err != nil {
		return err
	}
	order, err := squeueColumns.Order(q.order)
	if err != nil {
		return err
	}
	list, err := s.list(ctx, a)
	if err != nil {
		return err
	}
	if q.each {
		list = eachTask(list)
	}
	rows, err := rowsOf(ctx, a, list, q.json || form.Asked() || order.Asked() || q.reservations != nil)
	if err != nil {
		return err
	}
	view := viewOf(a)
	view.As, view.NoHeader, view.Unit = "slurm", q.noHeader, q.unit
	if q.reservations != nil {
		rows = slices.DeleteFunc(rows, func(r row) bool { return !slices.Contains(q.reservations, rowReservation(&view, &r)) })
	}
	order.Sort(rows, view)
	if q.json {
		return writeJSON(a, "jobs", rows, jobJSON(view))
	}
	s.clusters.heading(a, q.noHeader)
	if q.wide && !q.noHeader {
		fmt.Fprintln(a.Out, a.Now().Local().Format(time.ANSIC))
	}
	return form.Write(a.Out, rows, view)
}

// eachTask lists each task that waits by itself.
func eachTask(list []api.Job) []api.Job {
	var out []api.Job
	for _, j := range list {
		set, err := indexes.Set(nil), error(nil)
		if j.Tasks != nil && j.Tasks.NumWaiting > 0 {
			set, err = indexes.Parse(j.Tasks.Waiting)
		}
		if err != nil || set == nil {
			out = append(out, j)
			continue
		}
		for _, r := range set {
			for i := r.First; i <= r.Last; i++ {
				t := j
				t.Tasks, t.Task, t.Parent = nil, &i, j.Number
				t.ID = fmt.Sprintf("%d_%d", j.Number, i)
				out = append(out, t)
			}
		}
	}
	return out
}

// rowsOf makes rows of jobs, with their documents where they are asked for.
func rowsOf(ctx context.Context, a *cli.App, list []api.Job, documents bool) ([]row, error) {
	rows := make([]row, len(list))
	specs := map[job.Number]*job.Spec{} // of arrays, whose tasks have the same
	for i, j := range list {
		rows[i].Job = j
		if !documents || j.Private {
			continue
		}
		spec, ok := specs[j.Parent]
		if !ok || j.Parent == 0 {
			d, err := a.Client.Job(ctx, jobs.ID(&j), client.JobOptions{})
			switch {
			case client.IsCode(err, api.CodeNotFound): // it has gone since
			case err != nil:
				return nil, err
			default:
				spec = d.Spec
				rows[i].Used, rows[i].Attempts, rows[i].Steps = d.Used, d.Attempts, d.Steps
			}
			specs[j.Parent] = spec
		}
		rows[i].spec = spec
	}
	return rows, nil
}
