package acct

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/human"
	"gbatch/internal/cli/jobs"
	"gbatch/internal/cli/table"
	"gbatch/internal/document"
	"gbatch/internal/node"
)

// column is a column of gacct. Slurm's names stand beside its own where they
// mean the same.
type column = table.Column[api.PastJob]

// same is a column that gqueue has too, there under the name of.
func same(name, slurm, of string) column {
	return table.Lift(jobs.Columns.Named(of), name, slurm, func(j *api.PastJob) *api.Job { return &j.Job })
}

// useColumn is a column about what a job used; a dash where that is not known.
func useColumn(name, slurm, title string, cell func(b []byte, u *api.Used) []byte) column {
	return column{Key: name, Also: slurm, Title: title, Right: true, Cell: func(_ *table.View, b []byte, j *api.PastJob) []byte {
		if j.Used == nil {
			return append(b, '-')
		}
		return cell(b, j.Used)
	}}
}

// gpuColumn is a column about what its GPUs did.
func gpuColumn(name, title string, cell func(b []byte, g *node.GPUUse) []byte) column {
	return useColumn(name, "", title, func(b []byte, u *api.Used) []byte {
		if u.GPU == nil {
			return append(b, '-')
		}
		return cell(b, u.GPU)
	})
}

var columns = table.Set[api.PastJob]{
	same("id", "JobID JobIDRaw", "id"), same("name", "JobName", "name"), same("user", "User", "user"), same("project", "Account", "project"), same("state", "State", "state"),
	same("exit", "", "exit"),
	{Key: "exitcode", Also: "ExitCode", Title: "EXITCODE", Right: true, Cell: slurmExit},
	same("reason", "Reason", "reason"),
	same("submit", "Submit", "submitted"), same("start", "Start", "start"), same("end", "End", "end"),
	useColumn("elapsed", "Elapsed", "ELAPSED", func(b []byte, u *api.Used) []byte { return human.Duration(b, u.ElapsedS) }),
	useColumn("elapsedraw", "ElapsedRaw", "ELAPSEDRAW", func(b []byte, u *api.Used) []byte { return strconv.AppendInt(b, u.ElapsedS, 10) }),
	{Key: "wait", Title: "WAIT", Right: true, Cell: func(_ *table.View, b []byte, j *api.PastJob) []byte {
		if j.Started.IsZero() {
			return append(b, '-')
		}
		return human.Duration(b, int64(j.Started.Sub(j.Submitted)/time.Second))
	}},
	same("limit", "Timelimit", "limit"), same("gpus", "", "gpus"), same("cpus", "AllocCPUS NCPUS ReqCPUS", "cpus"), same("mem", "ReqMem", "mem"),
	same("nodes", "NNodes AllocNodes", "nodes"), same("nodelist", "NodeList", "nodelist"), same("cluster", "Partition", "cluster"), same("qos", "QOS", "qos"), same("priority", "Priority", "priority"),
	useColumn("peakmem", "MaxRSS", "PEAK MEM", func(b []byte, u *api.Used) []byte { return human.Size(b, u.PeakMem) }),
	useColumn("cputime", "TotalCPU", "CPU TIME", func(b []byte, u *api.Used) []byte { return human.Duration(b, int64(u.CPUTimeS)) }),
	gpuColumn("gpuutil", "GPU UTIL", func(b []byte, g *node.GPUUse) []byte { return simulated(percent(b, g.Utilization), g) }),
	gpuColumn("gpuutilmax", "GPU MAX", func(b []byte, g *node.GPUUse) []byte { return simulated(percent(b, g.MaxUtilization), g) }),
	gpuColumn("gpumem", "GPU MEM", func(b []byte, g *node.GPUUse) []byte { return simulated(human.Size(b, g.MaxMem), g) }),
	gpuColumn("energy", "ENERGY", func(b []byte, g *node.GPUUse) []byte {
		if g.EnergyJ == 0 {
			return append(b, '-')
		}
		return simulated(append(strconv.AppendFloat(b, g.EnergyJ/3600, 'f', 1, 64), "Wh"...), g)
	}),
	useColumn("gpuhours", "", "GPU HOURS", func(b []byte, u *api.Used) []byte { return strconv.AppendFloat(b, u.GPUSeconds/3600, 'f', 2, 64) }),
	useColumn("billed", "", "BILLED", func(b []byte, u *api.Used) []byte { return strconv.AppendFloat(b, u.BilledHours, 'f', 2, 64) }),
	same("uuid", "", "uuid"),
}

// shown are the columns without -o.
const shown = "id,name,user,project,state,exit,reason,elapsed,gpus,gpuutil,cputime,peakmem,billed,end"

// simulated marks a figure that was made up: there are no such GPUs.
func simulated(b []byte, g *node.GPUUse) []byte {
	if g.Simulated && b[len(b)-1] != '-' {
		b = append(b, "(sim)"...)
	}
	return b
}

func percent(b []byte, v float64) []byte { return append(strconv.AppendFloat(b, v, 'f', 0, 64), '%') }

// slurmExit is code:signal.
func slurmExit(_ *table.View, b []byte, j *api.PastJob) []byte {
	switch {
	case j.ExitCode == nil:
		return append(b, '-')
	case *j.ExitCode > 128 && *j.ExitCode < 128+65:
		return fmt.Appendf(b, "0:%d", *j.ExitCode-128)
	}
	return fmt.Appendf(b, "%d:0", *j.ExitCode)
}

// chosen reads names, ours or Slurm's, in any case, separated by commas; name%20
// cuts it to 20.
func chosen(format string) ([]*column, error) {
	format = cmp.Or(format, shown)
	var out []*column
	for word := range strings.SplitSeq(format, ",") {
		name, width, has := strings.Cut(strings.TrimSpace(word), "%")
		c := columns.Named(name)
		if c == nil {
			return nil, exit.Usagef("there is no column %q%s; there are %s", name, near(name), columns.Known())
		}
		if has {
			n, err := strconv.Atoi(strings.TrimPrefix(width, "-"))
			if err != nil || n < 1 || n > table.MaxWidth {
				return nil, exit.Usagef("column %q: a width is between 1 and %d", word, table.MaxWidth)
			}
			c = cutTo(*c, n)
		}
		out = append(out, c)
	}
	return out, nil
}

// cutTo is the column, but no wider than n.
func cutTo(c column, n int) *column {
	whole := c.Cell
	c.Cell = func(v *table.View, b []byte, j *api.PastJob) []byte {
		return append(b, human.Cut(human.Clean(string(whole(v, nil, j))), n)...)
	}
	return &c
}

// near names a column that was meant.
func near(name string) string {
	var known []string
	for _, c := range columns {
		known = append(known, strings.Fields(strings.ToLower(c.Also))...)
		known = append(known, c.Name())
	}
	if near := document.Nearest(strings.ToLower(name), known); near != "" {
		return fmt.Sprintf(" (did you mean %q?)", near)
	}
	return ""
}
