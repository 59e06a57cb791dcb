package slurm

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"gbatch/internal/cli/human"
	"gbatch/internal/cli/jobs"
	"gbatch/internal/cli/table"
	"gbatch/internal/job/indexes"
)

// part is one Key=value of scontrol; where when says no, it is left out.
type part struct {
	key  string
	cell cellOf
	when func(c *control, r *row) bool
}

func (p part) only(when func(c *control, r *row) bool) part { p.when = when; return p }

func kv(key string, cell cellOf) part { return part{key: key, cell: cell} }

func unknown(of cellOf) cellOf {
	return func(v *table.View, r *row) string {
		if t := of(v, r); t != "N/A" {
			return t
		}
		return "Unknown"
	}
}

func userAndID(v *table.View, r *row) string  { return rowUser(v, r) + "(" + rowUID(v, r) + ")" }
func groupAndID(v *table.View, r *row) string { return rowGroup(v, r) + "(" + rowGID(v, r) + ")" }

func hasNodes(_ *control, r *row) bool  { return len(r.Nodes) > 0 }
func isTask(_ *control, r *row) bool    { return r.Task != nil || r.Tasks != nil }
func throttled(_ *control, r *row) bool { return r.Tasks != nil && r.Tasks.Parallelism > 0 }

// jobLines are the lines of scontrol show job, as Slurm has them.
var jobLines = [][]part{
	{kv("JobId", rowNumber), kv("ArrayJobId", rowArray).only(isTask), kv("ArrayTaskId", rowIndex).only(isTask),
		kv("ArrayTaskThrottle", func(_ *table.View, r *row) string { return fmt.Sprint(r.Tasks.Parallelism) }).only(throttled), kv("JobName", rowName)},
	{kv("UserId", userAndID), kv("GroupId", groupAndID), kv("MCS_label", always("N/A"))},
	{kv("Priority", rowPriority), kv("Nice", rowNice), kv("Account", rowAccount), kv("QOS", rowQOS)},
	{kv("JobState", rowState), kv("Reason", rowReason), kv("Dependency", rowDependency)},
	{kv("Requeue", rowRequeue), kv("Restarts", rowRestarts), kv("BatchFlag", always("1")), kv("Reboot", always("0")),
		kv("ExitCode", func(_ *table.View, r *row) string { return exitStatus(&r.Job) })},
	{kv("DerivedExitCode", always("0:0")).only(func(c *control, _ *row) bool { return c.details })},
	{kv("RunTime", func(v *table.View, r *row) string { return elapsed(jobs.Ran(&r.Job, v.Now)) }),
		kv("TimeLimit", func(_ *table.View, r *row) string {
			return pick(r.LimitS <= 0, "UNLIMITED", elapsed(time.Duration(r.LimitS)*time.Second))
		}), kv("TimeMin", func(_ *table.View, r *row) string {
			return pick(r.LimitMinS <= 0, "N/A", elapsed(time.Duration(r.LimitMinS)*time.Second))
		})},
	{kv("SubmitTime", rowSubmit), kv("EligibleTime", unknown(rowEligible))},
	{kv("AccrueTime", unknown(rowEligible))},
	{kv("StartTime", unknown(rowStart)), kv("EndTime", unknown(rowEnd)), kv("Deadline", rowDeadline)},
	{kv("SuspendTime", always("None")), kv("SecsPreSuspend", always("0")), kv("LastSchedEval", always("Unknown")), kv("Scheduler", always("Main"))},
	{kv("Partition", rowPartition), kv("AllocNode:Sid", always("N/A:0"))},
	{kv("ReqNodeList", rowReqNodes), kv("ExcNodeList", rowExcNodes)},
	{kv("NodeList", rowNodes)},
	{kv("BatchHost", rowFirstNode).only(hasNodes)},
	{kv("NumNodes", rowNumNodes), kv("NumCPUs", rowCPUs), kv("NumTasks", rowTasks), kv("CPUs/Task", rowCPUsPerTask), kv("ReqB:S:C:T", always("0:0:*:*"))},
	{kv("TRES", rowTRES)},
	{kv("Socks/Node", always("*")), kv("NtasksPerN:B:S:C", always("0:0:*:*")), kv("CoreSpec", always("*"))},
	{kv("JOB_GRES", func(_ *table.View, r *row) string { return strings.TrimPrefix(cmp.Or(r.gresTotal(), none), "gres:") }).only(func(c *control, r *row) bool { return c.details && r.GPUs > 0 })},
	{}, // with -d what it has on each node
	{kv("MinCPUsNode", rowCPUsPerNode), kv("MinMemoryNode", rowMem), kv("MinTmpDiskNode", always("0"))},
	{kv("Features", rowFeatures), kv("DelayBoot", always("00:00:00"))},
	{kv("Reservation", rowReservation).only(func(_ *control, r *row) bool { return given(rowReservation(nil, r)) != "" })},
	{kv("OverSubscribe", rowOverSubscr), kv("Contiguous", always("0")), kv("Licenses", rowLicenses), kv("Network", always(none))},
	{kv("Command", rowCommand)},
	{kv("WorkDir", rowWorkDir)},
	{kv("Container", rowImage)},
	{kv("Comment", rowComment).only(func(_ *control, r *row) bool { return given(rowComment(nil, r)) != "" })},
	{kv("StdErr", rowStdErr)}, {kv("StdIn", rowStdIn)}, {kv("StdOut", rowStdOut)},
	{kv("Power", always(""))},
	{kv("TresPerNode", func(_ *table.View, r *row) string { return r.gresPerNode() }).only(func(_ *control, r *row) bool { return r.GPUs > 0 })},
}

// job is one job as scontrol shows it.
func (c *control) job(v *table.View, r *row) string {
	var b strings.Builder
	for i, line := range jobLines {
		var parts []string
		for _, p := range line {
			if p.when == nil || p.when(c, r) {
				parts = append(parts, p.key+"="+human.Clean(p.cell(v, r)))
			}
		}
		if len(line) == 0 && c.details {
			b.WriteString(allocationText(r))
		}
		if len(parts) == 0 {
			continue
		}
		if i > 0 {
			b.WriteString("   ")
		}
		b.WriteString(strings.Join(parts, " ") + "\n")
	}
	return b.String()
}

func (r *row) gresTotal() string {
	if r.GPUs == 0 {
		return ""
	}
	return "gres:gpu:" + string(human.Number(nil, r.GPUs))
}

// allocationText is what a running job has on each of its nodes.
func allocationText(r *row) string {
	if len(r.Attempts) == 0 || !r.State.Active() {
		return ""
	}
	var b strings.Builder
	for _, k := range r.Attempts[len(r.Attempts)-1].Ranks {
		gpus, cores := "", k.Cores
		if len(k.GPUs) > 0 {
			gpus = fmt.Sprintf("gpu:%d", len(k.GPUs))
		}
		if cores == "" {
			cores = indexes.Set{{First: 0, Last: max(k.CPUs, 1) - 1}}.String()
		}
		fmt.Fprintf(&b, "     Nodes=%s CPU_IDs=%s Mem=%d GRES=%s\n", human.Clean(k.Node), cores, k.MemBytes>>20, gpus)
	}
	return b.String()
}
