package slurm

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/jobs"
	"gbatch/internal/cli/slurm/getopt"
	"gbatch/internal/cli/slurm/records"
	"gbatch/internal/client"
	"gbatch/internal/job"
	"gbatch/internal/units"
)

// What sacct prints where it is not told what.
const (
	sacctFormat = "JobID,JobName,Partition,Account,AllocCPUS,State,ExitCode"
	sacctBrief  = "JobID,State,ExitCode"
	sacctLong   = "JobID,JobIDRaw,JobName,Partition,MaxVMSize,MaxVMSizeNode,MaxVMSizeTask,AveVMSize,MaxRSS,MaxRSSNode,MaxRSSTask,AveRSS,MaxPages,MaxPagesNode,MaxPagesTask,AvePages," +
		"MinCPU,MinCPUNode,MinCPUTask,AveCPU,NTasks,AllocCPUS,Elapsed,State,ExitCode,AveCPUFreq,ReqCPUFreqMin,ReqCPUFreqMax,ReqCPUFreqGov,ReqMem,ConsumedEnergy," +
		"MaxDiskRead,MaxDiskReadNode,MaxDiskReadTask,AveDiskRead,MaxDiskWrite,MaxDiskWriteNode,MaxDiskWriteTask,AveDiskWrite,ReqTRES,AllocTRES,TRESUsageInAve,TRESUsageInMax"
)

// accounting is how sacct was asked to list.
type accounting struct {
	records.List[row]
	from, until                              string
	everyone, brief, wide, fieldsOnly, json_ bool
	jobsOnly, everyTry                       bool // no steps; those of earlier attempts too
	scripts                                  bool // instead of a list
	unit                                     byte // of memory
	wanted                                   string
}

func (k *accounting) selected(s *selection) []getopt.Option {
	return append(k.Options(),
		getopt.List(&s.ids, "-j", "--jobs"), getopt.List(&s.users, "-u", "--user", "--uid"), getopt.List(&s.accounts, "-A", "--account", "--accounts"), getopt.List(&s.names, "--name"),
		getopt.List(&s.states, "-s", "--state"), getopt.List(&s.parts, "-r", "--partition"), getopt.List(&s.nodes, "-N", "--nodelist"), getopt.List(&s.qos, "-q", "--qos"), s.clusters.option(),
		getopt.String(&k.from, "-S", "--starttime"), getopt.String(&k.until, "-E", "--endtime"), getopt.Bool(&k.everyone, "-a", "--allusers"),
		getopt.Bool(&k.brief, "-b", "--brief"), getopt.Bool(&k.wide, "-l", "--long"), getopt.Bool(&k.fieldsOnly, "-e", "--helpformat"), getopt.Bool(&k.json_, "--json"),
		getopt.Bool(&k.jobsOnly, "-X", "--allocations"), getopt.Bool(&k.everyTry, "-D", "--duplicates"), getopt.Ignored("--array"), getopt.Ignored("-L", "--allclusters"), getopt.Ignored("-v", "--verbose"),
		getopt.Ignored("--local", "--federation").From("SACCT_FEDERATION"), getopt.Ignored("--whole-hetjob"),
		getopt.Instead("use --json", "--yaml"), getopt.Instead("use gqueue show --json", "--env-vars"), getopt.Bool(&k.scripts, "-B", "--batch-script"),
		getopt.Do(func() { k.unit = asKept }, "--noconvert"), getopt.String(&k.wanted, "--units"), getopt.Ignored("--use-local-uid"),
		getopt.Instead("use gacct, which has filters of its own: gacct --help", "-c", "--completion", "-f", "--file", "-F", "--flags", "-C", "--constraints", "-i", "--nnodes", "-I", "--ncpus",
			"-k", "--timelimit-min", "-K", "--timelimit-max", "-T", "--truncate", "-W", "--wckeys", "-x", "--associations", "-g", "--gid", "-R", "--reason"))
}

// sacct shows what ended and what runs: jobs, and behind each its steps.
func sacct(ctx context.Context, a *cli.App, args []string) error {
	s := selection{all: true, past: true}
	k := accounting{List: records.List[row]{All: sacctFields, Bar: "|"}}
	options := k.selected(&s)
	for i, o := range options {
		if o.Is("--format") {
			options[i] = o.From("SACCT_FORMAT")
		}
	}
	rest, err := getopt.ParseWith(a.Env, args, options)
	switch {
	case err != nil:
		return err
	case len(rest) > 0:
		return exit.Usagef("%q is no option; name jobs by -j", rest[0])
	case k.fieldsOnly:
		k.PrintNames(a.Out)
		return nil
	case k.brief:
		k.Format = sacctBrief
	case k.wide:
		k.Format = sacctLong
	}
	if k.wanted != "" {
		if k.unit, err = wantedUnit(k.wanted); err != nil {
			return err
		}
	}
	k.Format = cmp.Or(k.Format, sacctFormat)
	if _, err := k.Chosen(); err != nil {
		return err
	}
	s.me = s.me || len(s.ids) == 0 && len(s.users) == 0 && !k.everyone
	named := slices.Clone(s.ids)
	for i, id := range s.ids {
		s.ids[i], _, _ = cutStep(id)
	}
	s.ids = slices.Compact(s.ids)
	rows, err := k.rows(ctx, a, &s)
	if err != nil {
		return err
	}
	if k.scripts {
		return batchScripts(a, rows)
	}
	if !k.jobsOnly && !k.json_ {
		rows = only(withSteps(rows, k.everyTry), named)
	}
	v := viewOf(a)
	v.Unit = k.unit
	if k.json_ {
		return writeJSON(a, "dbjobs", rows, pastJSON(v))
	}
	return k.Write(a.Out, &v, rows)
}

// documents are the fields that a job's document is needed for.
var documents = []string{"Comment", "Constraints", "Container", "WorkDir", "Reservation", "Restarts", "all"}

// rows are the jobs that are named, or that were there in a span of time: today
// unless it is said.
func (k *accounting) rows(ctx context.Context, a *cli.App, s *selection) ([]row, error) {
	start, end, err := k.span(a.Now())
	if err != nil {
		return nil, err
	}
	list, err := s.list(ctx, a)
	if err != nil && strings.Contains(err.Error(), invalidID) {
		return nil, nil // sacct says nothing of jobs that it does not know
	}
	if err != nil {
		return nil, err
	}
	fields, err := k.Chosen()
	if err != nil {
		return nil, err
	}
	named := len(s.ids) > 0
	if !named {
		list = slices.DeleteFunc(list, func(j api.Job) bool { return j.Submitted.After(end) || !j.Ended.IsZero() && j.Ended.Before(start) })
	}
	whole := named || k.json_ || k.scripts || slices.ContainsFunc(fields, func(f acctField) bool { return slices.Contains(documents, f.Name) })
	rows, err := rowsOf(ctx, a, list, whole)
	if err != nil || named {
		return rows, err
	}
	if err := k.addSteps(ctx, a, rows, whole); err != nil {
		return nil, err
	}
	// What ended long ago is in the history only, and so is what jobs used.
	where := map[job.Number]int{}
	for i, r := range rows {
		where[r.Number] = i
	}
	f := client.HistoryFilter{Users: s.users, Projects: s.accounts, Names: s.names, Start: start, End: end, Steps: !k.jobsOnly || k.json_}
	for j, err := range a.Client.Past(ctx, f) {
		if err != nil {
			return nil, err
		}
		if i, ok := where[j.Number]; ok {
			rows[i].Used, rows[i].Steps = j.Used, j.Steps
		} else if (j.Used != nil || j.Private) && s.keep(&j.Job) { // else it is an array, whose tasks are listed
			rows = append(rows, row{PastJob: *j})
		}
	}
	slices.SortFunc(rows, func(x, y row) int {
		return cmp.Or(cmp.Compare(x.Number, y.Number), cmp.Compare(jobs.ID(&x.Job), jobs.ID(&y.Job)))
	})
	return rows, nil
}

// addSteps completes the jobs that run, of which the history says nothing.
func (k *accounting) addSteps(ctx context.Context, a *cli.App, rows []row, whole bool) error {
	if k.jobsOnly || whole {
		return nil
	}
	for i, r := range rows {
		if !r.State.Active() || r.Private {
			continue
		}
		one, err := rowsOf(ctx, a, []api.Job{r.Job}, true)
		if err != nil {
			return err
		}
		rows[i] = one[0]
	}
	return nil
}

// span is from when until when jobs are listed.
func (k *accounting) span(now time.Time) (start, end time.Time, err error) {
	start, end = time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location()), now
	for _, t := range []struct {
		text string
		to   *time.Time
	}{{k.from, &start}, {k.until, &end}} {
		if t.text == "" {
			continue
		}
		if *t.to, err = parseTime(t.text, now); err != nil {
			return start, end, exit.Usagef("time %w", err)
		}
	}
	return start, end, nil
}

// slurmTimes are forms of times that Slurm takes besides ours; what of the date
// is missing is today's.
var slurmTimes = []string{"01/02/06", "01/02/2006", "01/02/06-15:04", "01/02/06-15:04:05", "01/02/2006-15:04:05", "2006-01-02-15:04", "2006-01-02-15:04:05", "20060102", "010206", "2006-01-02 15:04:05"}

// parseTime reads a time as Slurm's commands do.
func parseTime(text string, now time.Time) (time.Time, error) {
	if text == "now+0" {
		text = "now"
	}
	t, err := units.ParsePast(text, now, now.Location())
	if err == nil {
		return t, nil
	}
	for _, form := range slurmTimes {
		if t, err := time.ParseInLocation(form, text, now.Location()); err == nil {
			return t, nil
		}
	}
	for _, form := range []string{"15:04", "15:04:05"} {
		if t, err := time.ParseInLocation(form, text, now.Location()); err == nil {
			return time.Date(now.Year(), now.Month(), now.Day(), t.Hour(), t.Minute(), t.Second(), 0, now.Location()), nil
		}
	}
	for _, form := range []string{"01/02", "0102", "01.02"} {
		if t, err := time.ParseInLocation(form, text, now.Location()); err == nil {
			return time.Date(now.Year(), t.Month(), t.Day(), 0, 0, 0, 0, now.Location()), nil
		}
	}
	return time.Time{}, fmt.Errorf("%w, or as Slurm's commands take it: 03/01/26, 03/01, 18:00", err)
}
