package sim

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"gbatch/internal/job/nodelist"
	"gbatch/sched"
)

// sacctLog reads what a Slurm site's own accounting prints by sacct -P: a line
// for each job, and for its steps, which are passed over.
type sacctLog struct {
	columns map[string]int // of the header, in lower case
	row     []string
	line    int

	epoch                               bool // times are seconds since 1970
	jobs                                []sacctJob
	steps, never, open, torn, het, many int // lines and jobs passed over, or of note
	tornLine                            int
	seen                                map[string]bool
}

// sacctJob is one job as the export has it.
type sacctJob struct {
	id, user, account, partition string
	submit, start, end           sched.Time // since 1970
	run, limit                   sched.Time
	tres                         tres
	models                       []string // of GPUs that were asked for by type
	nodes                        []string
}

// maxSacctLine bounds a line: a list of nodes without ranges may be long.
const maxSacctLine = 1 << 20

// sacctNeeds are the columns without which nothing can be said, each with those
// that say the same.
var sacctNeeds = [][]string{{"jobid", "jobidraw"}, {"user"}, {"submit"}, {"start"}, {"end", "elapsed", "elapsedraw"},
	{"alloctres", "reqtres", "alloccpus", "ncpus", "reqcpus"}}

// sacctNames are those columns as sacct spells them.
var sacctNames = map[string]string{"jobid": "JobID", "jobidraw": "JobIDRaw", "user": "User", "submit": "Submit", "start": "Start", "end": "End",
	"elapsed": "Elapsed", "elapsedraw": "ElapsedRaw", "alloctres": "AllocTRES", "reqtres": "ReqTRES", "alloccpus": "AllocCPUS", "ncpus": "NCPUS", "reqcpus": "ReqCPUS"}

const sacctExport = "export it by: sacct -a -X -P -S DAY -E DAY --format=JobID,User,Account,Partition,Submit,Eligible,Start,End,Elapsed,Timelimit,State,ReqTRES,AllocTRES,NodeList"

func readSacct(r io.Reader) (*sacctLog, error) {
	l := &sacctLog{seen: map[string]bool{}}
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 64<<10), maxSacctLine)
	for in.Scan() {
		l.line++
		text := strings.TrimSuffix(in.Text(), "\r")
		if l.columns == nil {
			if err := l.header(strings.TrimPrefix(text, "\ufeff")); err != nil {
				return nil, err
			}
			continue
		}
		if text == "" {
			continue
		}
		if err := l.take(text); err != nil {
			return nil, lineError(l.line, "%w", err)
		}
	}
	if err := in.Err(); err != nil {
		return nil, lineError(l.line+1, "read: %w", err)
	}
	if l.columns == nil {
		return nil, fmt.Errorf("the file is empty; %s", sacctExport)
	}
	return l, nil
}

func (l *sacctLog) header(text string) error {
	l.columns = map[string]int{}
	for i, name := range strings.Split(text, "|") {
		name = strings.ToLower(strings.TrimSpace(name))
		if _, twice := l.columns[name]; twice && name != "" {
			return lineError(1, "column %q is there twice", name)
		}
		l.columns[name] = i
	}
	var missing []string
	for _, any := range sacctNeeds {
		if !slices.ContainsFunc(any, l.has) {
			var names []string
			for _, n := range any {
				names = append(names, sacctNames[n])
			}
			missing = append(missing, strings.Join(names, " or "))
		}
	}
	if len(missing) == len(sacctNeeds) {
		return lineError(1, "%q is no header of sacct -P; %s", short(text), sacctExport)
	}
	if len(missing) > 0 {
		return lineError(1, "columns are missing: %s; %s", strings.Join(missing, ", "), sacctExport)
	}
	return nil
}

// short is a text of the file, cut for a message.
func short(text string) string {
	if len(text) > 60 {
		return text[:60] + "..."
	}
	return text
}

func (l *sacctLog) has(name string) bool { _, ok := l.columns[name]; return ok }

// text is a field, "" where its column is absent or it says that it is not known.
func (l *sacctLog) text(name string) string {
	i, ok := l.columns[name]
	if !ok {
		return ""
	}
	switch s := strings.TrimSpace(l.row[i]); s {
	case "Unknown", "None", "None assigned", "N/A", "INVALID":
		return ""
	default:
		return s
	}
}

// first is the first of these fields that says something.
func (l *sacctLog) first(names ...string) string {
	for _, n := range names {
		if s := l.text(n); s != "" {
			return s
		}
	}
	return ""
}

func (l *sacctLog) take(text string) error {
	l.row = strings.Split(text, "|")
	switch {
	case len(l.row) < len(l.columns):
		return fmt.Errorf("has %d fields, the header has %d: was the file cut off?", len(l.row), len(l.columns))
	case len(l.row) > len(l.columns):
		if l.torn++; l.tornLine == 0 {
			l.tornLine = l.line
		}
		return nil
	}
	id := l.first("jobid", "jobidraw")
	if strings.Contains(id, ".") {
		l.steps++
		return nil
	}
	j := sacctJob{id: id, user: l.text("user"), account: l.text("account")}
	j.partition, _, _ = strings.Cut(l.text("partition"), ",")
	if err := l.times(&j); err != nil {
		return err
	}
	switch {
	case j.start == 0:
		l.never++
		return nil
	case j.end == 0:
		l.open++
		return nil
	}
	if err := l.amounts(&j); err != nil {
		return err
	}
	if strings.Contains(id, "+") {
		l.het++
	}
	if l.seen[id] {
		l.many++
	}
	l.seen[id] = true
	l.jobs = append(l.jobs, j)
	return nil
}

func (l *sacctLog) times(j *sacctJob) (err error) {
	read := func(name string) (t sched.Time) {
		if text := l.text(name); text != "" && err == nil {
			if t, err = l.moment(text); err != nil {
				err = fmt.Errorf("%s: %w", name, err)
			}
		}
		return t
	}
	submit, eligible := read("submit"), read("eligible")
	j.submit, j.start, j.end = submit, read("start"), read("end")
	if err != nil {
		return err
	}
	if j.submit == 0 {
		return fmt.Errorf("submit is %q: want a time", l.text("submit"))
	}
	if state, _, _ := strings.Cut(l.text("state"), " "); j.start == 0 || slices.Contains([]string{"PENDING", "RUNNING", "SUSPENDED", "RESIZING", "REQUEUED"}, state) {
		if j.start != 0 {
			j.end = 0
		}
		return nil
	}
	elapsed := l.first("elapsedraw", "elapsed")
	switch {
	case elapsed != "":
		if j.run, err = slurmSpan(elapsed, sched.Second); err != nil {
			return fmt.Errorf("elapsed: %w", err)
		}
		if !l.has("end") {
			j.end = j.start + j.run
		}
	case j.end != 0:
		j.run = max(j.end-j.start, 0)
	}
	// What a job waited for by its own will is not the scheduler's; a clock that
	// was set back, or a requeue, may have it start before.
	j.submit = min(max(j.submit, eligible), j.start)
	limit := l.text("timelimitraw")
	unit := sched.Minute
	if limit == "" {
		limit, unit = l.text("timelimit"), sched.Minute
	}
	if j.limit, err = slurmSpan(limit, unit); err != nil {
		j.limit, err = 0, nil // UNLIMITED, Partition_Limit
	}
	return nil
}

// moment reads a time as sacct prints it, without a zone, or as seconds.
func (l *sacctLog) moment(text string) (sched.Time, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 && n < 1<<34 {
		l.epoch = true
		return sched.Time(n) * sched.Second, nil
	}
	t, err := time.Parse("2006-01-02T15:04:05", text)
	if err != nil || t.Year() < 1970 || t.Year() > 2200 {
		return 0, fmt.Errorf("%q is no time as 2026-11-21T05:31:26", text)
	}
	return sched.Time(t.Unix()) * sched.Second, nil
}

// slurmSpan reads a length of time: DAYS-HH:MM:SS, HH:MM:SS, MM:SS, or a number of a
// unit. Parts of a second are dropped.
func slurmSpan(text string, unit sched.Time) (sched.Time, error) {
	bad := fmt.Errorf("%q is no length of time as 1-02:03:04", text)
	days, rest, has := strings.Cut(text, "-")
	total := int64(0)
	if has {
		n, err := strconv.ParseInt(days, 10, 64)
		if err != nil || n < 0 || n > 100_000 {
			return 0, bad
		}
		total = n * 86400
	} else {
		rest = text
	}
	rest, _, _ = strings.Cut(rest, ".")
	parts := strings.Split(rest, ":")
	if len(parts) > 3 || has && len(parts) != 3 {
		return 0, bad
	}
	var clock int64
	for _, p := range parts {
		n, err := strconv.ParseInt(p, 10, 64)
		if err != nil || n < 0 || n > 1<<32 {
			return 0, bad
		}
		clock = clock*60 + n
	}
	if len(parts) == 1 {
		return sched.Time(clock) * unit, nil
	}
	return sched.Time(total+clock) * sched.Second, nil
}

func (l *sacctLog) amounts(j *sacctJob) (err error) {
	if j.tres, err = parseTRES(l.first("alloctres", "reqtres")); err != nil {
		return err
	}
	asked, err := parseTRES(l.text("reqtres"))
	if err != nil {
		return err
	}
	j.models = slices.DeleteFunc(slices.Sorted(maps.Keys(asked.gpus)), func(m string) bool { return m == "" || asked.gpus[m] == 0 })
	for _, c := range []struct {
		to    *int64
		names []string
	}{{&j.tres.cpus, []string{"alloccpus", "ncpus", "reqcpus"}}, {&j.tres.nodes, []string{"allocnodes", "nnodes", "reqnodes"}}} {
		if text := l.first(c.names...); *c.to == 0 && text != "" {
			if *c.to, err = amount(text); err != nil {
				return fmt.Errorf("%s: %w", c.names[0], err)
			}
		}
	}
	if list := l.text("nodelist"); list != "" {
		if j.nodes, err = nodelist.Parse(list); err != nil {
			return fmt.Errorf("nodelist %q: %w", short(list), err)
		}
	}
	j.tres.nodes = max(j.tres.nodes, int64(len(j.nodes)), 1)
	if j.tres.nodes > 100_000 || j.tres.cpus > 1<<30 || j.tres.mib > 1<<40 || j.tres.gpu() > 1<<20 {
		return fmt.Errorf("the job has %d nodes, %d cores, %d MiB and %d GPUs, which cannot be", j.tres.nodes, j.tres.cpus, j.tres.mib, j.tres.gpu())
	}
	return nil
}

// tres is what a job had, on all its nodes together.
type tres struct {
	nodes, cpus, mib int64
	gpus             map[string]int64 // by type; "": of none that was named
}

func (t tres) gpu() (all int64) {
	for _, n := range t.gpus {
		all += n
	}
	return all
}

// parseTRES reads a list as cpu=4,mem=16G,node=1,gres/gpu=2,gres/gpu:a100=2.
func parseTRES(text string) (tres, error) {
	t := tres{gpus: map[string]int64{}}
	all, typed := int64(0), int64(0)
	if text == "" {
		return t, nil
	}
	for item := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(item, "=")
		kind, model, _ := strings.Cut(name, ":")
		if !slices.Contains([]string{"cpu", "mem", "node", "gres/gpu"}, kind) {
			continue // billing, energy, licences
		}
		n, err := amount(value)
		if err != nil {
			return t, fmt.Errorf("%s: %w", short(item), err)
		}
		switch {
		case kind == "cpu":
			t.cpus = n
		case kind == "mem":
			t.mib = (n + 1<<20 - 1) >> 20
		case kind == "node":
			t.nodes = n
		case model == "":
			all = n
		default:
			typed, t.gpus[model] = typed+n, n
		}
	}
	if all > typed {
		t.gpus[""] = all - typed
	}
	return t, nil
}

// amount reads a number with K, M, G, T or P behind it, in powers of 1024.
func amount(text string) (int64, error) {
	digits := strings.TrimRight(text, "KMGTPncB")
	x, err := strconv.ParseFloat(digits, 64)
	if err != nil || x < 0 {
		return 0, fmt.Errorf("%q is no amount", text)
	}
	if rest := strings.Trim(text[len(digits):], "ncB"); rest != "" {
		x *= float64(int64(1) << (10 * (1 + strings.IndexByte("KMGTP", rest[0]))))
	}
	if x > 1<<60 {
		return 0, fmt.Errorf("%q is too much", text)
	}
	return int64(x), nil
}
