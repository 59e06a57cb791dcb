package cli

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/job"
)

// column is one thing that can be said of a job, or of a node, in a list. Its
// letter is Slurm's where Slurm has it, and below a blank where it has none. Its
// name is its title in small letters.
type column[T any] struct {
	letter byte
	title  string
	right  bool
	least  int // see gridColumn
	cell   func(v *view, b []byte, x *T) []byte
}

func (c *column[T]) name() string { return strings.ToLower(c.title) }

// view is how jobs are looked at: when, and with times in which form.
type view struct {
	now      time.Time
	relative bool   // "in 5m" for times
	text     bool   // reasons as sentences
	as       string // whose words for states; empty: ours
}

var columns = columnSet[api.Job]{
	{'i', "ID", true, 0, func(_ *view, b []byte, j *api.Job) []byte { return listID(b, j) }},
	{'F', "ARRAY", true, 0, func(_ *view, b []byte, j *api.Job) []byte { return strconv.AppendUint(b, arrayNumber(j), 10) }},
	{'A', "JOBID", true, 0, func(_ *view, b []byte, j *api.Job) []byte { return strconv.AppendUint(b, uint64(j.Number), 10) }},
	{'j', "NAME", false, 8, func(_ *view, b []byte, j *api.Job) []byte { return append(b, j.Name...) }},
	{'u', "USER", false, 6, func(_ *view, b []byte, j *api.Job) []byte { return orDash(b, j.User) }},
	{'a', "PROJECT", false, 6, func(_ *view, b []byte, j *api.Job) []byte { return orDash(b, j.Project) }},
	{'t', "ST", false, 0, func(_ *view, b []byte, j *api.Job) []byte { return orDash(b, shortStates[j.State]) }},
	{'T', "STATE", false, 0, func(v *view, b []byte, j *api.Job) []byte { return append(b, stateAs(v.as, j)...) }},
	{'M', "TIME", true, 0, func(v *view, b []byte, j *api.Job) []byte { return slurmDuration(b, int64(ran(j, v.now)/time.Second)) }},
	{'l', "LIMIT", true, 0, func(_ *view, b []byte, j *api.Job) []byte { return limit(b, j.LimitS) }},
	{'L', "LEFT", true, 0, timeLeft},
	{'D', "NODES", true, 0, func(_ *view, b []byte, j *api.Job) []byte {
		return strconv.AppendInt(b, int64(max(len(j.Nodes), 1)), 10)
	}},
	{'R', "NODES/REASON", false, 10, nodesOrReason},
	{'r', "REASON", false, 10, func(v *view, b []byte, j *api.Job) []byte { return orDash(b, reason(v, j)) }},
	{'N', "NODELIST", false, 8, func(_ *view, b []byte, j *api.Job) []byte { return orDash(b, compressHosts(j.Nodes)) }},
	{'C', "CPUS", true, 0, func(_ *view, b []byte, j *api.Job) []byte { return strconv.AppendInt(b, int64(j.CPUs), 10) }},
	{'m', "MEM", true, 0, func(_ *view, b []byte, j *api.Job) []byte { return sizeText(b, j.MemBytes) }},
	{'b', "GPUS", true, 0, func(_ *view, b []byte, j *api.Job) []byte { return number(b, j.GPUs) }},
	{'S', "START", true, 0, func(v *view, b []byte, j *api.Job) []byte { return v.moment(b, startOf(j)) }},
	{'e', "END", true, 0, func(v *view, b []byte, j *api.Job) []byte { return v.moment(b, endOf(j)) }},
	{'V', "SUBMITTED", true, 0, func(v *view, b []byte, j *api.Job) []byte { return v.moment(b, j.Submitted) }},
	{'P', "CLUSTER", true, 0, func(_ *view, b []byte, j *api.Job) []byte { return cluster(b, j.Cluster) }},
	{'p', "PRIORITY", true, 0, func(_ *view, b []byte, j *api.Job) []byte { return strconv.AppendInt(b, priorityOf(j), 10) }},
	{'Q', "PRIORITY", true, 0, func(_ *view, b []byte, j *api.Job) []byte { return strconv.AppendInt(b, priorityOf(j), 10) }},
	{'q', "QOS", false, 6, func(_ *view, b []byte, j *api.Job) []byte { return orDash(b, j.QOS) }},
	{'K', "INDEX", true, 0, func(_ *view, b []byte, j *api.Job) []byte { return taskIndex(b, j) }},
	{'E', "DEPENDENCY", false, 0, func(_ *view, b []byte, j *api.Job) []byte { return orDash(b, j.Dependency) }},
	{1, "EXIT", true, 0, func(_ *view, b []byte, j *api.Job) []byte {
		if j.ExitCode == nil {
			return append(b, '-')
		}
		return strconv.AppendInt(b, int64(*j.ExitCode), 10)
	}},
	{2, "AGE", true, 0, factor(func(p *api.Priority) int64 { return p.Age })},
	{3, "FAIRSHARE", true, 0, factor(func(p *api.Priority) int64 { return p.FairShare })},
	{4, "SIZE", true, 0, factor(func(p *api.Priority) int64 { return p.Size })},
	{5, "QOSPOINTS", true, 0, factor(func(p *api.Priority) int64 { return p.QOS })},
	{6, "ADJUSTMENT", true, 0, factor(func(p *api.Priority) int64 { return p.User })},
	{7, "OTHER", true, 0, factor(func(p *api.Priority) int64 { return p.Slowdown + p.Small })},
	{'U', "UUID", false, 0, func(_ *view, b []byte, j *api.Job) []byte { return append(b, j.UUID...) }},
}

// columnSet is what can be said of one kind of thing.
type columnSet[T any] []column[T]

func (set columnSet[T]) of(letter byte) *column[T] {
	for i := range set {
		if set[i].letter == letter {
			return &set[i]
		}
	}
	return nil
}

// named finds a column by its name, or by its letter where Slurm has one.
func (set columnSet[T]) named(name string) *column[T] {
	for i := range set {
		if set[i].name() == strings.ToLower(name) {
			return &set[i]
		}
	}
	if len(name) == 1 && name[0] > ' ' {
		return set.of(name[0])
	}
	return nil
}

// letters lists the known letters, for messages.
func (set columnSet[T]) letters() string {
	var out []string
	for _, c := range set {
		if c.letter > ' ' {
			out = append(out, string(c.letter)+" "+c.name())
		}
	}
	return strings.Join(out, ", ")
}

// names lists the known names, for messages.
func (set columnSet[T]) names() string {
	var out []string
	for _, c := range set {
		if !slices.Contains(out, c.name()) {
			out = append(out, c.name())
		}
	}
	return strings.Join(out, ", ")
}

// factor is a term of a job's priority.
func factor(term func(*api.Priority) int64) func(*view, []byte, *api.Job) []byte {
	return func(_ *view, b []byte, j *api.Job) []byte {
		if j.Factors == nil {
			return append(b, '-')
		}
		return strconv.AppendInt(b, term(j.Factors), 10)
	}
}

// priorityOf is a job's priority as far as it was asked for.
func priorityOf(j *api.Job) int64 {
	if j.Factors != nil {
		return j.Factors.Total
	}
	return j.Priority
}

func orDash(b []byte, s string) []byte {
	if s == "" {
		return append(b, '-')
	}
	return append(b, s...)
}

func cluster(b []byte, id int) []byte {
	if id == 0 {
		return append(b, '-')
	}
	return strconv.AppendInt(b, int64(id), 10)
}

func limit(b []byte, secs int64) []byte {
	if secs <= 0 {
		return append(b, "none"...)
	}
	return slurmDuration(b, secs)
}

func (v *view) moment(b []byte, t time.Time) []byte {
	switch {
	case t.IsZero():
		return append(b, '-')
	case v.relative:
		return append(b, relTime(t, v.now)...)
	}
	return t.Local().AppendFormat(b, isoTime)
}

// ran is how long the job runs or ran.
func ran(j *api.Job, now time.Time) time.Duration {
	switch {
	case j.Started.IsZero() || j.State.Pending():
		return 0
	case !j.Ended.IsZero():
		return j.Ended.Sub(j.Started)
	}
	return now.Sub(j.Started)
}

func timeLeft(v *view, b []byte, j *api.Job) []byte {
	switch {
	case j.LimitS <= 0:
		return append(b, "none"...)
	case j.State.Final():
		return append(b, '-')
	}
	return slurmDuration(b, j.LimitS-int64(ran(j, v.now)/time.Second))
}

// startOf is when the job started, or is expected to.
func startOf(j *api.Job) time.Time {
	if j.Started.IsZero() || j.State.Pending() {
		return j.EstStart
	}
	return j.Started
}

// endOf is when the job ended, or must end.
func endOf(j *api.Job) time.Time {
	if j.Ended.IsZero() && j.State == job.Running && j.LimitS > 0 {
		return j.Started.Add(time.Duration(j.LimitS) * time.Second)
	}
	return j.Ended
}

func reason(v *view, j *api.Job) string {
	if v.text && j.ReasonText != "" {
		return j.ReasonText
	}
	return j.Reason
}

// nodesOrReason is where an active or finished job is or was, and else why it
// is not: (Resources), (OOM).
func nodesOrReason(v *view, b []byte, j *api.Job) []byte {
	why := reason(v, j)
	if j.State.Active() || j.State == job.Finished || why == "" {
		why = ""
		if len(j.Nodes) > 0 {
			return append(b, compressHosts(j.Nodes)...)
		}
		return append(b, '-')
	}
	b = append(b, '(')
	b = append(b, why...)
	return append(b, ')')
}
