package cli

import (
	"strconv"
	"strings"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/job"
)

// column is one thing that can be said of a job in a list. Its letter is
// Slurm's where Slurm has it.
type column struct {
	letter byte
	title  string
	right  bool
	least  int // see gridColumn
	cell   func(v *view, b []byte, j *api.Job) []byte
}

// view is how jobs are looked at: when, and with times in which form.
type view struct {
	now      time.Time
	relative bool   // "in 5m" for times
	text     bool   // reasons as sentences
	as       string // whose words for states; empty: ours
}

var columns = []column{
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
	{'p', "PRIORITY", true, 0, func(_ *view, b []byte, j *api.Job) []byte { return strconv.AppendInt(b, j.Priority, 10) }},
	{'Q', "PRIORITY", true, 0, func(_ *view, b []byte, j *api.Job) []byte { return strconv.AppendInt(b, j.Priority, 10) }},
	{'q', "QOS", false, 6, func(_ *view, b []byte, j *api.Job) []byte { return orDash(b, j.QOS) }},
	{'K', "INDEX", true, 0, func(_ *view, b []byte, j *api.Job) []byte { return taskIndex(b, j) }},
	{'E', "DEPENDENCY", false, 0, func(_ *view, b []byte, j *api.Job) []byte { return orDash(b, j.Dependency) }},
	{'U', "UUID", false, 0, func(_ *view, b []byte, j *api.Job) []byte { return append(b, j.UUID...) }},
}

func columnOf(letter byte) *column {
	for i := range columns {
		if columns[i].letter == letter {
			return &columns[i]
		}
	}
	return nil
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

// letters lists the known letters, for messages.
func letters() string {
	var b strings.Builder
	for i, c := range columns {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteByte(c.letter)
		b.WriteString(" " + strings.ToLower(c.title))
	}
	return b.String()
}
