package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
)

// acctColumn is a column of gacct, by name. Slurm's name stands beside it where
// it means the same.
type acctColumn struct {
	name, slurm string // slurm: several, separated by blanks
	title       string
	right       bool
	least       int
	width       int // exactly so wide; 0: as wide as its cells
	cell        func(v *view, b []byte, j *api.PastJob) []byte
}

// jobColumn is a column that gqueue has too.
func jobColumn(letter byte, name, slurm string) acctColumn {
	c := columns.of(letter)
	return acctColumn{name: name, slurm: slurm, title: c.title, right: c.right, least: c.least,
		cell: func(v *view, b []byte, j *api.PastJob) []byte { return c.cell(v, b, &j.Job) }}
}

// useColumn is a column about what a job used; a dash where that is not known.
func useColumn(name, slurm, title string, cell func(b []byte, u *api.Used) []byte) acctColumn {
	return acctColumn{name: name, slurm: slurm, title: title, right: true, cell: func(_ *view, b []byte, j *api.PastJob) []byte {
		if j.Used == nil {
			return append(b, '-')
		}
		return cell(b, j.Used)
	}}
}

// gpuColumn is a column about what its GPUs did.
func gpuColumn(name, title string, cell func(b []byte, g *node.GPUUse) []byte) acctColumn {
	return useColumn(name, "", title, func(b []byte, u *api.Used) []byte {
		if u.GPU == nil {
			return append(b, '-')
		}
		return cell(b, u.GPU)
	})
}

var acctColumns = []acctColumn{
	jobColumn('i', "id", "JobID JobIDRaw"), jobColumn('j', "name", "JobName"), jobColumn('u', "user", "User"), jobColumn('a', "project", "Account"), jobColumn('T', "state", "State"),
	{name: "exit", title: "EXIT", right: true, cell: func(_ *view, b []byte, j *api.PastJob) []byte {
		if j.ExitCode == nil {
			return append(b, '-')
		}
		return strconv.AppendInt(b, int64(*j.ExitCode), 10)
	}},
	{name: "exitcode", slurm: "ExitCode", title: "EXITCODE", right: true, cell: slurmExit},
	jobColumn('r', "reason", "Reason"),
	jobColumn('V', "submit", "Submit"), jobColumn('S', "start", "Start"), jobColumn('e', "end", "End"),
	useColumn("elapsed", "Elapsed", "ELAPSED", func(b []byte, u *api.Used) []byte { return slurmDuration(b, u.ElapsedS) }),
	useColumn("elapsedraw", "ElapsedRaw", "ELAPSEDRAW", func(b []byte, u *api.Used) []byte { return strconv.AppendInt(b, u.ElapsedS, 10) }),
	{name: "wait", title: "WAIT", right: true, cell: func(_ *view, b []byte, j *api.PastJob) []byte {
		if j.Started.IsZero() {
			return append(b, '-')
		}
		return slurmDuration(b, int64(j.Started.Sub(j.Submitted)/time.Second))
	}},
	jobColumn('l', "limit", "Timelimit"), jobColumn('b', "gpus", ""), jobColumn('C', "cpus", "AllocCPUS NCPUS ReqCPUS"), jobColumn('m', "mem", "ReqMem"),
	jobColumn('D', "nodes", "NNodes AllocNodes"), jobColumn('N', "nodelist", "NodeList"), jobColumn('P', "cluster", "Partition"), jobColumn('q', "qos", "QOS"), jobColumn('p', "priority", "Priority"),
	useColumn("peakmem", "MaxRSS", "PEAK MEM", func(b []byte, u *api.Used) []byte { return sizeText(b, u.PeakMem) }),
	useColumn("cputime", "TotalCPU", "CPU TIME", func(b []byte, u *api.Used) []byte { return slurmDuration(b, int64(u.CPUTimeS)) }),
	gpuColumn("gpuutil", "GPU UTIL", func(b []byte, g *node.GPUUse) []byte { return simulated(percent(b, g.Utilization), g) }),
	gpuColumn("gpuutilmax", "GPU MAX", func(b []byte, g *node.GPUUse) []byte { return simulated(percent(b, g.MaxUtilization), g) }),
	gpuColumn("gpumem", "GPU MEM", func(b []byte, g *node.GPUUse) []byte { return simulated(sizeText(b, g.MaxMem), g) }),
	gpuColumn("energy", "ENERGY", func(b []byte, g *node.GPUUse) []byte {
		if g.EnergyJ == 0 {
			return append(b, '-')
		}
		return simulated(append(strconv.AppendFloat(b, g.EnergyJ/3600, 'f', 1, 64), "Wh"...), g)
	}),
	useColumn("gpuhours", "", "GPU HOURS", func(b []byte, u *api.Used) []byte { return strconv.AppendFloat(b, u.GPUSeconds/3600, 'f', 2, 64) }),
	useColumn("billed", "", "BILLED", func(b []byte, u *api.Used) []byte { return strconv.AppendFloat(b, u.BilledHours, 'f', 2, 64) }),
	jobColumn('U', "uuid", ""),
}

// acctShown are the columns without -o.
const acctShown = "id,name,user,project,state,exit,reason,elapsed,gpus,gpuutil,cputime,peakmem,billed,end"

// simulated marks a figure that was made up: there are no such GPUs.
func simulated(b []byte, g *node.GPUUse) []byte {
	if g.Simulated && b[len(b)-1] != '-' {
		b = append(b, "(sim)"...)
	}
	return b
}

func percent(b []byte, v float64) []byte { return append(strconv.AppendFloat(b, v, 'f', 0, 64), '%') }

// slurmExit is code:signal.
func slurmExit(_ *view, b []byte, j *api.PastJob) []byte {
	switch {
	case j.ExitCode == nil:
		return append(b, '-')
	case *j.ExitCode > 128 && *j.ExitCode < 128+65:
		return fmt.Appendf(b, "0:%d", *j.ExitCode-128)
	}
	return fmt.Appendf(b, "%d:0", *j.ExitCode)
}

// put is the cell in the column's width.
func (c *acctColumn) put(v *view, b []byte, j *api.PastJob) []byte {
	if c.width == 0 {
		return c.cell(v, b, j)
	}
	return append(b, cut(clean(string(c.cell(v, nil, j))), c.width)...)
}

// parseColumns reads names, ours or Slurm's, in any case, separated by commas;
// name%20 cuts it to 20.
func parseColumns(format string) ([]acctColumn, error) {
	if format == "" {
		format = acctShown
	}
	var out []acctColumn
	for _, word := range strings.Split(format, ",") {
		name, width, has := strings.Cut(strings.TrimSpace(word), "%")
		c := acctColumnOf(name)
		if c == nil {
			return nil, usageError("there is no column %q%s; there are %s", name, nearColumn(name), columnNames())
		}
		col := *c
		if has {
			n, err := strconv.Atoi(strings.TrimPrefix(width, "-"))
			if err != nil || n < 1 || n > maxFieldWidth {
				return nil, usageError("column %q: a width is between 1 and %d", word, maxFieldWidth)
			}
			col.width = n
		}
		out = append(out, col)
	}
	return out, nil
}

func acctColumnOf(name string) *acctColumn {
	for i := range acctColumns {
		c := &acctColumns[i]
		for _, known := range append(strings.Fields(c.slurm), c.name) {
			if strings.EqualFold(known, name) {
				return c
			}
		}
	}
	return nil
}

// nearColumn names a column that was meant.
func nearColumn(name string) string {
	var known []string
	for _, c := range acctColumns {
		known = append(known, append(strings.Fields(strings.ToLower(c.slurm)), c.name)...)
	}
	if near := job.Nearest(strings.ToLower(name), known); near != "" {
		return fmt.Sprintf(" (did you mean %q?)", near)
	}
	return ""
}

func columnNames() string {
	var names []string
	for _, c := range acctColumns {
		names = append(names, c.name)
	}
	return strings.Join(names, ", ")
}
