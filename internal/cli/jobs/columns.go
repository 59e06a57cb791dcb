// Package jobs is what the commands say of a job: its columns in lists, its
// state in our words and in those of other systems, how far an array is, how it
// ended, and the exit code that this is for who waited. It asks the controller
// for nothing and prints nothing.
package jobs

import (
	"strconv"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/cli/human"
	"gbatch/internal/cli/table"
	"gbatch/internal/job"
)

// column is a column that is aligned to the left.
func column(letters, title string, least int, cell func(v *table.View, b []byte, j *api.Job) []byte) table.Column[api.Job] {
	return table.Column[api.Job]{Letters: letters, Title: title, Least: least, Cell: cell}
}

// numbers is a column of numbers: aligned to the right, and ordered as numbers.
func numbers(letters, title string, order func(*api.Job) int64, cell func(b []byte, j *api.Job) []byte) table.Column[api.Job] {
	return table.Column[api.Job]{Letters: letters, Title: title, Right: true,
		Order: func(_ *table.View, j *api.Job) int64 { return order(j) },
		Cell:  func(_ *table.View, b []byte, j *api.Job) []byte { return cell(b, j) }}
}

// count is a column of numbers that are written as they are.
func count(letters, title string, of func(*api.Job) int64) table.Column[api.Job] {
	return numbers(letters, title, of, func(b []byte, j *api.Job) []byte { return strconv.AppendInt(b, of(j), 10) })
}

// moment is a column of times.
func moment(letters, title string, of func(*api.Job) time.Time) table.Column[api.Job] {
	return table.Column[api.Job]{Letters: letters, Title: title, Right: true,
		Order: func(_ *table.View, j *api.Job) int64 { return of(j).Unix() },
		Cell:  func(v *table.View, b []byte, j *api.Job) []byte { return v.Moment(b, of(j)) }}
}

// kept is a column that a narrow terminal loses after the others.
func kept(c table.Column[api.Job]) table.Column[api.Job] {
	c.Keep = true
	return c
}

// span is a column of lengths of time, which may change with the clock.
func span(letters, title string, order func(v *table.View, j *api.Job) int64, cell func(v *table.View, b []byte, j *api.Job) []byte) table.Column[api.Job] {
	return table.Column[api.Job]{Letters: letters, Title: title, Right: true, Order: order, Cell: cell}
}

// text is a column that shows one text of a job, or a dash.
func text(letters, title string, least int, of func(v *table.View, j *api.Job) string) table.Column[api.Job] {
	return column(letters, title, least, func(v *table.View, b []byte, j *api.Job) []byte { return human.OrDash(b, of(v, j)) })
}

// factor is a term of a job's priority.
func factor(title string, term func(*api.Priority) int64) table.Column[api.Job] {
	of := func(j *api.Job) int64 {
		if j.Factors == nil {
			return 0
		}
		return term(j.Factors)
	}
	c := numbers("", title, of, func(b []byte, j *api.Job) []byte {
		if j.Factors == nil {
			return append(b, '-')
		}
		return strconv.AppendInt(b, of(j), 10)
	})
	c.Asked = true
	return c
}

// Columns are all that can be said of a job in a list. Letters are Slurm's where
// Slurm has the column.
var Columns = table.Set[api.Job]{
	numbers("i", "ID", func(j *api.Job) int64 { return int64(j.Number) }, listID),
	count("F", "ARRAY", arrayNumber),
	count("A", "JOBID", func(j *api.Job) int64 { return int64(j.Number) }),
	column("j", "NAME", 8, func(_ *table.View, b []byte, j *api.Job) []byte { return append(b, j.Name...) }),
	text("u", "USER", 6, func(_ *table.View, j *api.Job) string { return j.User }),
	text("a", "PROJECT", 6, func(_ *table.View, j *api.Job) string { return j.Project }),
	text("t", "ST", 0, func(_ *table.View, j *api.Job) string { return shortState(j) }),
	{Letters: "T", Title: "STATE", Keep: true, Color: stateColor,
		Cell: func(v *table.View, b []byte, j *api.Job) []byte { return append(b, StateAs(v.As, j)...) }},
	span("M", "TIME", func(v *table.View, j *api.Job) int64 { return int64(Ran(j, v.Now)) },
		func(v *table.View, b []byte, j *api.Job) []byte {
			return human.Duration(b, int64(Ran(j, v.Now)/time.Second))
		}),
	numbers("l", "LIMIT", func(j *api.Job) int64 { return j.LimitS }, func(b []byte, j *api.Job) []byte { return Limit(b, j.LimitS) }),
	span("L", "LEFT", func(v *table.View, j *api.Job) int64 { return j.LimitS - int64(Ran(j, v.Now).Seconds()) }, timeLeft),
	count("D", "NODES", func(j *api.Job) int64 { return int64(NumNodes(j)) }),
	column("R", "NODES/REASON", 10, nodesOrReason),
	text("r", "REASON", 10, reason),
	text("N", "NODELIST", 8, func(_ *table.View, j *api.Job) string { return human.Hosts(j.Nodes) }),
	count("C", "CPUS", func(j *api.Job) int64 { return int64(j.CPUs) }),
	numbers("m", "MEM", func(j *api.Job) int64 { return j.MemBytes }, func(b []byte, j *api.Job) []byte { return human.Size(b, j.MemBytes) }),
	numbers("b", "GPUS", func(j *api.Job) int64 { return int64(j.GPUs * 1000) }, func(b []byte, j *api.Job) []byte { return human.Number(b, j.GPUs) }),
	kept(moment("S", "START", StartOf)),
	moment("e", "END", EndOf),
	moment("V", "SUBMITTED", func(j *api.Job) time.Time { return j.Submitted }),
	numbers("P", "CLUSTER", func(j *api.Job) int64 { return int64(j.Cluster) }, func(b []byte, j *api.Job) []byte { return cluster(b, j.Cluster) }),
	text("", "PARTITION", 6, func(_ *table.View, j *api.Job) string { return j.Partition }),
	priority,
	text("q", "QOS", 6, func(_ *table.View, j *api.Job) string { return j.QOS }),
	numbers("K", "INDEX", firstIndex, taskIndex),
	text("E", "DEPENDENCY", 0, func(_ *table.View, j *api.Job) string { return j.Dependency }),
	numbers("", "EXIT", exitCode, func(b []byte, j *api.Job) []byte {
		if j.ExitCode == nil {
			return append(b, '-')
		}
		return strconv.AppendInt(b, exitCode(j), 10)
	}),
	factor("AGE", func(p *api.Priority) int64 { return p.Age }),
	factor("FAIRSHARE", func(p *api.Priority) int64 { return p.FairShare }),
	factor("SIZE", func(p *api.Priority) int64 { return p.Size }),
	factor("QOSPOINTS", func(p *api.Priority) int64 { return p.QOS }),
	factor("ADJUSTMENT", func(p *api.Priority) int64 { return p.User }),
	factor("OTHER", func(p *api.Priority) int64 { return p.Slowdown + p.Small + p.Partition }),
	column("U", "UUID", 0, func(_ *table.View, b []byte, j *api.Job) []byte { return append(b, j.UUID...) }),
}

// priority is a job's priority as far as the controller was asked for it.
var priority = func() table.Column[api.Job] {
	c := count("pQ", "PRIORITY", func(j *api.Job) int64 {
		if j.Factors != nil {
			return j.Factors.Total
		}
		return j.Priority
	})
	c.Asked = true
	return c
}()

// NumNodes is on how many nodes a job is, or on how many it wants to be.
func NumNodes(j *api.Job) int { return max(len(j.Nodes), j.NumNodes, 1) }

// exitCode is -1 for a job that has none.
func exitCode(j *api.Job) int64 {
	if j.ExitCode == nil {
		return -1
	}
	return int64(*j.ExitCode)
}

// cluster writes a cluster's number.
func cluster(b []byte, id int) []byte {
	if id == 0 {
		return append(b, '-')
	}
	return strconv.AppendInt(b, int64(id), 10)
}

// Limit writes a time limit.
func Limit(b []byte, secs int64) []byte {
	if secs <= 0 {
		return append(b, "none"...)
	}
	return human.Duration(b, secs)
}

func timeLeft(v *table.View, b []byte, j *api.Job) []byte {
	switch {
	case j.LimitS <= 0:
		return append(b, "none"...)
	case j.State.Final():
		return append(b, '-')
	}
	return human.Duration(b, j.LimitS-int64(Ran(j, v.Now)/time.Second))
}

func reason(v *table.View, j *api.Job) string {
	if v.Text && j.ReasonText != "" {
		return j.ReasonText
	}
	return j.Reason
}

// appendEnding adds for how long a job is being ended already: what takes long there is
// not to look as a job that runs.
func appendEnding(b []byte, v *table.View, j *api.Job) []byte {
	if j.Ending == nil || j.Ending.Since.IsZero() {
		return b
	}
	b = append(b, " (ending for "...)
	b = human.Duration(b, int64(v.Now.Sub(j.Ending.Since)/time.Second))
	return append(b, ')')
}

// nodesOrReason is where an active or finished job is or was, and else why it
// is not: (Resources), (OOM).
func nodesOrReason(v *table.View, b []byte, j *api.Job) []byte {
	why := reason(v, j)
	if j.State.Active() || j.State == job.Finished || why == "" {
		if len(j.Nodes) == 0 {
			return append(b, '-')
		}
		b = append(b, human.Hosts(j.Nodes)...)
		if j.Reason == "Paused" && j.Ending == nil { // it stands still, and is not to look as one that works
			return append(b, " (paused)"...)
		}
		return appendEnding(b, v, j)
	}
	b = append(b, '(')
	b = append(b, why...)
	return append(b, ')')
}
