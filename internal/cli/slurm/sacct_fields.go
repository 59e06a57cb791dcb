package slurm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/cli/jobs"
	"gbatch/internal/cli/slurm/records"
	"gbatch/internal/cli/table"
	"gbatch/internal/job"
)

type acctField = records.Field[row]

func acct(name string, width int, cell cellOf) acctField {
	return acctField{Name: name, Width: width, Cell: cell}
}

// used is a field about what a job used; empty where that is not known.
func used(name string, width int, of func(v *table.View, r *row, u *api.Used) string) acctField {
	return acct(name, width, func(v *table.View, r *row) string {
		if r.Used == nil {
			return ""
		}
		return of(v, r, r.Used)
	})
}

// blank are fields that Slurm has and that nothing is known for here. Slurm too
// leaves them empty where its plug-ins do not fill them.
func blank(width int, names ...string) []acctField { return unmeasured[row](width, names...) }

func unmeasured[T any](width int, names ...string) (out []records.Field[T]) {
	for _, name := range names {
		out = append(out, records.Field[T]{Name: name, Width: width, Cell: func(*table.View, *T) string { return "" }})
	}
	return out
}

func acctEmpty(of cellOf) cellOf {
	return func(v *table.View, r *row) string { return given(of(v, r)) }
}

func ranTime(v *table.View, r *row) time.Duration { return jobs.Ran(&r.Job, v.Now) }

// held is the processor time that a job held.
func held(v *table.View, r *row) time.Duration { return ranTime(v, r) * time.Duration(r.CPUs) }

func seconds(d time.Duration) string { return fmt.Sprint(int64(d / time.Second)) }

// planned is how long a job waited, or waits.
func planned(v *table.View, r *row) time.Duration {
	if r.Started.IsZero() {
		return v.Now.Sub(r.Submitted)
	}
	return r.Started.Sub(r.Submitted)
}

func kibibytes(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%dK", n>>10)
}

// stepMem is memory that a step used.
func stepMem(of func(s *stepOf, u *job.StepUse) (kib int64)) cellOf {
	return func(v *table.View, r *row) string {
		switch {
		case r.step == nil || r.step.use == nil:
			return ""
		case v.Unit != 0:
			return amount(v, of(r.step, r.step.use)<<10, 'K')
		}
		return kibibytes(of(r.step, r.step.use) << 10)
	}
}

// sacctFields are all that sacct knows, with Slurm's widths.
var sacctFields = silentOfSteps(joined(
	[]acctField{
		acct("Account", 10, acctEmpty(rowAccount)), acct("AdminComment", 19, always("")),
		acct("AllocCPUS", 10, allocated0(rowCPUs)), acct("AllocNodes", 10, allocated0(rowNumNodes)), acct("AllocTRES", 10, rowTRESAlloc),
		acct("AssocID", 10, always("")),
		acct("Cluster", 10, always(clusterName)), acct("Comment", 14, acctEmpty(rowComment)), acct("Constraints", 15, acctEmpty(rowFeatures)), acct("Container", 12, acctEmpty(rowImage)),
		acct("CPUTime", 10, func(v *table.View, r *row) string { return elapsed(held(v, r)) }),
		acct("CPUTimeRAW", 10, func(v *table.View, r *row) string { return seconds(held(v, r)) }),
		acct("DerivedExitCode", 15, always("0:0")),
		acct("Elapsed", 10, func(v *table.View, r *row) string { return elapsed(ranTime(v, r)) }),
		acct("ElapsedRaw", 10, func(v *table.View, r *row) string { return seconds(ranTime(v, r)) }),
		acct("Eligible", 19, func(v *table.View, r *row) string { return at(v, r.Submitted, "Unknown") }),
		acct("End", 19, func(v *table.View, r *row) string { return at(v, r.Ended, "Unknown") }),
		acct("ExitCode", 8, func(_ *table.View, r *row) string { return r.exit() }),
		acct("Flags", 20, always("")), acct("GID", 6, rowGID), acct("Group", 9, rowGroup),
		acct("JobID", -12, rowID), acct("JobIDRaw", 12, rowNumber), acct("JobName", 10, rowName),
		acct("McsLabel", 10, always("")), acct("NCPUS", 10, allocated0(rowCPUs)), acct("NNodes", 8, rowNumNodes),
		acct("NodeList", 15, func(v *table.View, r *row) string { return cmp.Or(rowNodes(v, r), "None assigned") }),
		acct("Partition", 10, rowPartition), acct("Priority", 10, rowPriority), acct("QOS", 10, rowQOS), acct("QOSRAW", 10, always("")),
		acct("Reason", 22, rowReason), acct("ReqCPUS", 8, rowCPUs), acct("ReqMem", 10, rowMem), acct("ReqNodes", 8, rowNumNodes), acct("ReqTRES", 10, rowTRES),
		acct("Reservation", 20, acctEmpty(rowReservation)), acct("ReservationId", 8, always("")),
		acct("Reserved", 10, func(v *table.View, r *row) string { return elapsed(planned(v, r)) }),
		acct("Planned", 10, func(v *table.View, r *row) string { return elapsed(planned(v, r)) }),
		acct("ResvCPU", 10, func(v *table.View, r *row) string { return elapsed(planned(v, r) * time.Duration(r.CPUs)) }),
		acct("ResvCPURAW", 10, func(v *table.View, r *row) string { return seconds(planned(v, r) * time.Duration(r.CPUs)) }),
		acct("Restarts", 8, rowRestarts),
		acct("Start", 19, func(v *table.View, r *row) string { return at(v, r.Started, "Unknown") }),
		acct("State", 10, rowAccounted), acct("Submit", 19, func(v *table.View, r *row) string { return at(v, r.Submitted, "Unknown") }),
		acct("SubmitLine", 20, always("")), acct("Suspended", 10, always("00:00:00")), acct("SystemComment", 20, always("")),
		acct("Timelimit", 10, func(v *table.View, r *row) string {
			if r.LimitS <= 0 {
				return "UNLIMITED"
			}
			return elapsed(time.Duration(r.LimitS) * time.Second)
		}),
		acct("TimelimitRaw", 10, func(_ *table.View, r *row) string { return fmt.Sprint(r.LimitS / 60) }),
		acct("TotalCPU", 10, rowTotalCPU), acct("UserCPU", 10, rowStepCPU(func(u *job.StepUse) int64 { return u.UserMS })), acct("SystemCPU", 10, rowStepCPU(func(u *job.StepUse) int64 { return u.SystemMS })),
		used("TRESUsageInMax", 14, func(_ *table.View, _ *row, u *api.Used) string { return usage(u) }),
		used("TRESUsageInTot", 14, func(_ *table.View, _ *row, u *api.Used) string { return usage(u) }),
		used("TRESUsageInAve", 14, func(_ *table.View, _ *row, u *api.Used) string { return usage(u) }),
		acct("UID", 6, rowUID), acct("User", 9, rowUser), acct("WCKey", 10, always("")), acct("WCKeyID", 10, always("")), acct("WorkDir", 20, acctEmpty(rowWorkDir)),
	},
	stepFields,
	blank(10, "AveCPUFreq", "AvePages", "AveVMSize", "MaxVMSize", "MaxVMSizeNode", "MaxVMSizeTask", "MaxPages", "MaxPagesNode", "MaxPagesTask"),
	blank(14, "AveDiskRead", "AveDiskWrite", "MaxDiskRead", "MaxDiskReadNode", "MaxDiskReadTask", "MaxDiskWrite", "MaxDiskWriteNode", "MaxDiskWriteTask"),
	blank(14, "ConsumedEnergy", "ConsumedEnergyRaw", "ReqCPUFreq", "ReqCPUFreqMin", "ReqCPUFreqMax", "ReqCPUFreqGov", "BlockID", "DBIndex", "Layout", "FailedNode"),
	blank(14, "TRESUsageInMaxNode", "TRESUsageInMaxTask", "TRESUsageInMin", "TRESUsageInMinNode", "TRESUsageInMinTask",
		"TRESUsageOutAve", "TRESUsageOutMax", "TRESUsageOutMaxNode", "TRESUsageOutMaxTask", "TRESUsageOutMin", "TRESUsageOutMinNode", "TRESUsageOutMinTask", "TRESUsageOutTot"),
))

// rowTotalCPU is the processor time of a job, or of what srun started.
func rowTotalCPU(_ *table.View, r *row) string {
	switch {
	case r.step != nil && r.step.use != nil:
		return milliseconds(r.step.use.UserMS + r.step.use.SystemMS)
	case r.step == nil && r.Used != nil:
		return elapsed(time.Duration(r.Used.CPUTimeS * float64(time.Second)))
	}
	return ""
}

// rowStepCPU is a part of it, which is known of what srun started alone.
func rowStepCPU(of func(u *job.StepUse) int64) cellOf {
	return func(_ *table.View, r *row) string {
		if s := r.step; s != nil && s.use != nil && s.name != batchStep {
			return milliseconds(of(s.use))
		}
		return ""
	}
}

// jobFields are those that Slurm leaves empty in the lines of steps.
var jobFields = []string{"Constraints", "Comment", "DerivedExitCode", "Eligible", "Flags", "GID", "Group", "Partition", "Planned", "Priority", "QOS", "Reason", "ReqMem", "ReqTRES",
	"Reservation", "Reserved", "Restarts", "ResvCPU", "ResvCPURAW", "Timelimit", "TimelimitRaw", "UID", "User", "WorkDir", "Container"}

func silentOfSteps(all []acctField) []acctField {
	for i, f := range all {
		if slices.Contains(jobFields, f.Name) {
			all[i].Cell = jobOnly(f.Cell)
		}
	}
	return all
}

func joined(lists ...[]acctField) (out []acctField) {
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}

// allocated0 is a count that is 0 of a job that holds nothing yet.
func allocated0(of cellOf) cellOf {
	return func(v *table.View, r *row) string {
		if r.State.Pending() {
			return "0"
		}
		return of(v, r)
	}
}

// usage is what a job used, in the words of TRES.
func usage(u *api.Used) string {
	parts := []string{"cpu=" + elapsed(time.Duration(u.CPUTimeS*float64(time.Second)))}
	if u.PeakMem > 0 {
		parts = append(parts, "mem="+kibibytes(u.PeakMem))
	}
	if g := u.GPU; g != nil && g.Samples > 0 && !g.Simulated {
		parts = append(parts, fmt.Sprintf("gres/gpumem=%s", mebibytes(g.MaxMem)), fmt.Sprintf("gres/gpuutil=%.0f", g.Utilization))
	}
	return strings.Join(parts, ",")
}
