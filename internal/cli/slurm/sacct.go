package slurm

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/human"
	"gbatch/internal/cli/jobs"
	"gbatch/internal/cli/table"
	"gbatch/internal/client"
	"gbatch/internal/job"
)

// sacctField is a field of sacct.
type sacctField struct {
	name  string
	width int // negative: aligned to the left
	cell  func(now time.Time, j *api.PastJob) string
}

// sacctFields are all of them, with Slurm's widths.
var sacctFields = []sacctField{
	{"JobID", -12, func(_ time.Time, j *api.PastJob) string { return jobs.ID(&j.Job) }},
	{"JobIDRaw", 12, func(_ time.Time, j *api.PastJob) string { return fmt.Sprint(j.Number) }},
	{"JobName", 10, func(_ time.Time, j *api.PastJob) string { return j.Name }},
	{"User", 9, func(_ time.Time, j *api.PastJob) string { return j.User }},
	{"Account", 10, func(_ time.Time, j *api.PastJob) string { return j.Project }},
	{"Partition", 10, func(_ time.Time, j *api.PastJob) string { return string(jobs.Cluster(nil, j.Cluster)) }},
	{"QOS", 10, func(_ time.Time, j *api.PastJob) string { return j.QOS }},
	{"AllocCPUS", 10, func(_ time.Time, j *api.PastJob) string { return fmt.Sprint(j.CPUs) }},
	{"NCPUS", 10, func(_ time.Time, j *api.PastJob) string { return fmt.Sprint(j.CPUs) }},
	{"ReqCPUS", 8, func(_ time.Time, j *api.PastJob) string { return fmt.Sprint(j.CPUs) }},
	{"ReqMem", 10, func(_ time.Time, j *api.PastJob) string { return string(human.Size(nil, j.MemBytes)) }},
	{"AllocTRES", 10, func(_ time.Time, j *api.PastJob) string {
		s := fmt.Sprintf("cpu=%d,mem=%s", j.CPUs, human.Size(nil, j.MemBytes))
		if j.GPUs > 0 {
			s += ",gres/gpu=" + strconv.FormatFloat(j.GPUs, 'f', -1, 64)
		}
		return s
	}},
	{"State", 10, func(_ time.Time, j *api.PastJob) string { return jobs.StateAs("slurm", &j.Job) }},
	{"ExitCode", 8, func(_ time.Time, j *api.PastJob) string { return sacctExit(&j.Job) }},
	{"Elapsed", 10, func(now time.Time, j *api.PastJob) string { return elapsed(jobs.Ran(&j.Job, now)) }},
	{"ElapsedRaw", 10, func(now time.Time, j *api.PastJob) string {
		return fmt.Sprint(int64(jobs.Ran(&j.Job, now) / time.Second))
	}},
	{"Timelimit", 10, func(_ time.Time, j *api.PastJob) string {
		return elapsed(time.Duration(j.LimitS) * time.Second)
	}},
	{"Submit", 19, func(_ time.Time, j *api.PastJob) string { return string(moment(nil, j.Submitted)) }},
	{"Start", 19, func(_ time.Time, j *api.PastJob) string { return acctMoment(j.Started) }},
	{"End", 19, func(_ time.Time, j *api.PastJob) string { return acctMoment(j.Ended) }},
	{"NodeList", 15, func(_ time.Time, j *api.PastJob) string { return cmp.Or(human.Hosts(j.Nodes), "None assigned") }},
	{"NNodes", 8, func(_ time.Time, j *api.PastJob) string { return fmt.Sprint(max(len(j.Nodes), 1)) }},
	{"Reason", 22, func(_ time.Time, j *api.PastJob) string { return cmp.Or(j.Reason, "None") }},
	{"MaxRSS", 10, func(_ time.Time, j *api.PastJob) string {
		if j.Used == nil || j.Used.PeakMem == 0 {
			return ""
		}
		return fmt.Sprintf("%dK", j.Used.PeakMem>>10)
	}},
	{"TotalCPU", 10, func(_ time.Time, j *api.PastJob) string {
		if j.Used == nil {
			return ""
		}
		return elapsed(time.Duration(j.Used.CPUTimeS * float64(time.Second)))
	}},
}

// sacctExit is a code and a signal, of which Slurm shows one.
func sacctExit(j *api.Job) string {
	switch {
	case j.ExitCode == nil || j.State == job.Cancelled:
		return "0:0"
	case j.Reason == string(job.OOM):
		return "0:125"
	case j.Reason == string(job.Signal) && *j.ExitCode > 128:
		return fmt.Sprintf("0:%d", *j.ExitCode-128)
	}
	return fmt.Sprintf("%d:0", *j.ExitCode)
}

// elapsed is sacct's: two digits for hours at least.
func elapsed(d time.Duration) string {
	s := int64(max(d, 0) / time.Second)
	text := fmt.Sprintf("%02d:%02d:%02d", s/3600%24, s/60%60, s%60)
	if days := s / 86400; days > 0 {
		text = fmt.Sprintf("%d-%s", days, text)
	}
	return text
}

func acctMoment(t time.Time) string {
	if t.IsZero() {
		return "Unknown"
	}
	return string(moment(nil, t))
}

// sacct shows what ended and what runs. Jobs have no steps, so each is one line,
// as with -X.
func sacct(ctx context.Context, a *cli.App, args []string) error {
	s := selection{all: true}
	format, from, until := "JobID,JobName,Partition,Account,AllocCPUS,State,ExitCode", "", ""
	noHeader, everyone, parsable, parsable2, brief, fieldsOnly := false, false, false, false, false, false
	delimiter := "|"
	rest, err := parse(args, []option{
		listOf(&s.ids, "-j", "--jobs"), listOf(&s.users, "-u", "--user", "--uid"), listOf(&s.accounts, "-A", "--account", "--accounts"), listOf(&s.names, "--name"),
		listOf(&s.states, "-s", "--state"), listOf(&s.parts, "-r", "--partition"), listOf(&s.nodes, "-N", "--nodelist"),
		stringOf(&format, "-o", "--format"), stringOf(&from, "-S", "--starttime"), stringOf(&until, "-E", "--endtime"), stringOf(&delimiter, "--delimiter"),
		boolOf(&noHeader, "-n", "--noheader"), boolOf(&everyone, "-a", "--allusers"), boolOf(&parsable, "-p", "--parsable"), boolOf(&parsable2, "-P", "--parsable2"),
		boolOf(&brief, "-b", "--brief"), boolOf(&fieldsOnly, "-e", "--helpformat"), ignored("-X", "--allocations"), ignored("-D", "--duplicates"), ignored("--array"),
		insteadOf("name fields with --format, or use gacct", "-l", "--long", "-v", "--verbose"), insteadOf("use gacct --json", "--json", "--yaml"),
		insteadOf("choose the controller with GBATCH_CONTROLLER", "-M", "--clusters", "-L", "--allclusters"), insteadOf("use gsubmit --convert", "-B", "--batch-script"),
	})
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return exit.Usagef("%q is no option; name jobs by -j", rest[0])
	}
	if brief {
		format = "JobID,State,ExitCode"
	}
	if fieldsOnly {
		for _, f := range sacctFields {
			fmt.Fprintln(a.Out, f.name)
		}
		return nil
	}
	fields, err := sacctFormat(format)
	if err != nil {
		return err
	}
	s.me = s.me || len(s.ids) == 0 && len(s.users) == 0 && !everyone
	past, err := pastJobs(ctx, a, &s, from, until)
	if err != nil {
		return err
	}
	row := func(cells []string) {
		if parsable || parsable2 {
			end := ""
			if parsable {
				end = delimiter
			}
			fmt.Fprintln(a.Out, human.Clean(strings.Join(cells, delimiter))+end)
			return
		}
		fmt.Fprintln(a.Out, padded(cells, fields))
	}
	if !noHeader {
		var head, line []string
		for _, f := range fields {
			head = append(head, f.name)
			line = append(line, strings.Repeat("-", max(f.width, -f.width)))
		}
		row(head)
		if !parsable && !parsable2 {
			row(line)
		}
	}
	for i := range past {
		var cells []string
		for _, f := range fields {
			cells = append(cells, f.cell(a.Now(), &past[i]))
		}
		row(cells)
	}
	return nil
}

// padded puts cells into their widths.
func padded(cells []string, fields []sacctField) string {
	var b strings.Builder
	for i, c := range cells {
		c = human.Clean(c)
		if r, most := []rune(c), max(fields[i].width, -fields[i].width); len(r) > most {
			c = string(r[:most-1]) + "+"
		}
		fmt.Fprintf(&b, "%*s ", fields[i].width, c)
	}
	return b.String()
}

// sacctFormat reads Name[%[-]WIDTH],...
func sacctFormat(format string) (fields []sacctField, err error) {
	for w := range strings.SplitSeq(format, ",") {
		name, width, given := strings.Cut(strings.TrimSpace(w), "%")
		i := slices.IndexFunc(sacctFields, func(f sacctField) bool { return strings.EqualFold(f.name, name) })
		if i < 0 {
			var known []string
			for _, f := range sacctFields {
				known = append(known, f.name)
			}
			return nil, exit.Usagef("field %q is not played here: there are %s; gacct has more", name, strings.Join(known, ", "))
		}
		f := sacctFields[i]
		if given {
			if f.width, err = strconv.Atoi(width); err != nil || f.width == 0 || f.width > table.MaxWidth || f.width < -table.MaxWidth {
				return nil, exit.Usagef("field %q: want a width between 1 and %d", w, table.MaxWidth)
			}
		}
		fields = append(fields, f)
	}
	return fields, nil
}

// pastJobs are those that are named, or that were there in a span of time:
// today unless it is said.
func pastJobs(ctx context.Context, a *cli.App, s *selection, from, until string) ([]api.PastJob, error) {
	now := a.Now()
	start, end := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location()), now
	for _, t := range []struct {
		text string
		to   *time.Time
	}{{from, &start}, {until, &end}} {
		if t.text == "" {
			continue
		}
		var err error
		if *t.to, err = human.ParsePast(t.text, now, now.Location()); err != nil {
			return nil, exit.Usagef("time %w", err)
		}
	}
	used := map[job.Number]*api.Used{}
	var all []api.PastJob
	list, err := s.list(ctx, a)
	if err != nil && strings.Contains(err.Error(), "Invalid job id") {
		return nil, nil // sacct says nothing of jobs that it does not know
	}
	if err != nil {
		return nil, err
	}
	for _, j := range list {
		if len(s.ids) == 0 && (j.Submitted.After(end) || !j.Ended.IsZero() && j.Ended.Before(start)) {
			continue
		}
		if d, err := a.Client.Job(ctx, cmp.Or(j.ID, fmt.Sprint(j.Number)), client.JobOptions{}); err == nil && len(s.ids) > 0 {
			used[j.Number] = d.Used
		}
		all = append(all, api.PastJob{Job: j, Used: used[j.Number]})
	}
	if len(s.ids) > 0 {
		return all, nil
	}
	// What ended long ago is in the history only.
	seen := map[job.Number]bool{}
	for _, j := range all {
		seen[j.Number] = true
	}
	f := client.HistoryFilter{Users: s.users, Projects: s.accounts, Names: s.names, Start: start, End: end}
	for j, err := range a.Client.Past(ctx, f) {
		if err != nil {
			return nil, err
		}
		if !seen[j.Number] && j.Tasks == nil && s.keep(&j.Job) {
			all = append(all, *j)
		}
	}
	slices.SortFunc(all, func(x, y api.PastJob) int { return cmp.Compare(x.Number, y.Number) })
	return all, nil
}
