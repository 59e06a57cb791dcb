package slurm

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/human"
	"gbatch/internal/cli/slurm/getopt"
	"gbatch/internal/cli/slurm/records"
	"gbatch/internal/cli/table"
	"gbatch/internal/client"
	"gbatch/internal/job"
)

// live is what a running job has used until now.
type live struct {
	id    string
	ranks []api.Rank // that have said what they used
}

// most is the rank that has most of something.
func (x *live) most(of func(r *api.Rank) float64) (at int, sum float64) {
	for i := range x.ranks {
		v := of(&x.ranks[i])
		if sum += v; v > of(&x.ranks[at]) {
			at = i
		}
	}
	return at, sum
}

// idlest is the rank that has used the least processor time.
func (x *live) idlest() (at int) {
	for i := range x.ranks {
		if liveCPU(&x.ranks[i]) < liveCPU(&x.ranks[at]) {
			at = i
		}
	}
	return at
}

func liveMem(r *api.Rank) float64 { return float64(max(r.Use.PeakMem, r.Use.Mem)) }
func liveCPU(r *api.Rank) float64 { return r.Use.CPUSeconds }

func liveField(name string, width int, of func(x *live) string) records.Field[live] {
	return records.Field[live]{Name: name, Width: width, Cell: func(_ *table.View, x *live) string { return of(x) }}
}

func (x *live) cpu(seconds float64) string {
	return elapsed(time.Duration(seconds * float64(time.Second)))
}

func (x *live) nodes() (names []string) {
	for _, r := range x.ranks {
		names = append(names, r.Node)
	}
	return names
}

// sstatFields are sstat's. What is not measured is empty, as in sacct.
var sstatFields = slices.Concat([]records.Field[live]{
	liveField("JobID", -12, func(x *live) string { return x.id }),
	liveField("MaxRSS", 10, func(x *live) string { i, _ := x.most(liveMem); return kibibytes(int64(liveMem(&x.ranks[i]))) }),
	liveField("MaxRSSNode", 10, func(x *live) string { i, _ := x.most(liveMem); return x.ranks[i].Node }),
	liveField("MaxRSSTask", 10, func(x *live) string { i, _ := x.most(liveMem); return itoa(int64(i)) }),
	liveField("AveRSS", 10, func(x *live) string { _, sum := x.most(liveMem); return kibibytes(int64(sum) / int64(len(x.ranks))) }),
	liveField("MinCPU", 10, func(x *live) string { return x.cpu(liveCPU(&x.ranks[x.idlest()])) }),
	liveField("AveCPU", 10, func(x *live) string { _, sum := x.most(liveCPU); return x.cpu(sum / float64(len(x.ranks))) }),
	liveField("MinCPUNode", 10, func(x *live) string { return x.ranks[x.idlest()].Node }),
	liveField("MinCPUTask", 10, func(x *live) string { return itoa(int64(x.idlest())) }),
	liveField("NTasks", 8, func(x *live) string { return itoa(int64(len(x.ranks))) }),
	liveField("Nodelist", 15, func(x *live) string { return human.Hosts(x.nodes()) }),
}, unmeasured[live](14, "AveCPUFreq", "AvePages", "AveVMSize", "MaxVMSize", "MaxVMSizeNode", "MaxVMSizeTask", "MaxPages", "MaxPagesNode", "MaxPagesTask",
	"AveDiskRead", "AveDiskWrite", "MaxDiskRead", "MaxDiskReadNode", "MaxDiskReadTask", "MaxDiskWrite", "MaxDiskWriteNode", "MaxDiskWriteTask", "ConsumedEnergy", "ConsumedEnergyRaw", "Pids",
	"ReqCPUFreq", "ReqCPUFreqMin", "ReqCPUFreqMax", "ReqCPUFreqGov", "TRESUsageInAve", "TRESUsageInMax", "TRESUsageInMaxNode", "TRESUsageInMaxTask", "TRESUsageInMin", "TRESUsageInMinNode", "TRESUsageInMinTask", "TRESUsageInTot",
	"TRESUsageOutAve", "TRESUsageOutMax", "TRESUsageOutMaxNode", "TRESUsageOutMaxTask", "TRESUsageOutMin", "TRESUsageOutMinNode", "TRESUsageOutMinTask", "TRESUsageOutTot"))

// sstat shows what running jobs use. What runs in a job is not told apart, so a job
// is one line, as its batch script.
func sstat(ctx context.Context, a *cli.App, args []string) error {
	var ids []string
	k := records.List[live]{All: sstatFields, Bar: "|", Format: "JobID,MaxRSS,MaxRSSNode,MaxRSSTask,AveRSS,MinCPU,AveCPU,NTasks"}
	fieldsOnly := false
	rest, err := getopt.Parse(args, append(k.Options(), getopt.List(&ids, "-j", "--jobs"), getopt.Bool(&fieldsOnly, "-e", "--helpformat"), getopt.Ignored("-a", "--allsteps", "-v", "--verbose"),
		getopt.Instead("use gexec JOB -- ps", "-i", "--pidformat"), getopt.Ignored("--noconvert")))
	if err != nil {
		return err
	}
	if fieldsOnly {
		k.PrintNames(a.Out)
		return nil
	}
	if ids = append(ids, rest...); len(ids) == 0 {
		return exit.Usagef("sstat: You didn't give me any jobs to stat.")
	}
	if _, err := k.Chosen(); err != nil {
		return err
	}
	var rows []live
	for _, id := range ids {
		number, step, stepped := strings.Cut(id, ".")
		if stepped && step != "batch" {
			return exit.Usagef("job step %s: what runs in a job is not told apart; ask for %s", id, number)
		}
		d, err := a.Client.Job(ctx, number, client.JobOptions{})
		if err != nil {
			return fmt.Errorf("couldn't get steps for job %s: %w", id, err)
		}
		x := live{id: rowNumber(nil, &row{PastJob: api.PastJob{Job: d.Job, Used: d.Used, Attempts: d.Attempts}}) + ".batch"}
		if len(d.Attempts) > 0 && d.State.Active() {
			for _, r := range d.Attempts[len(d.Attempts)-1].Ranks {
				if r.Use != nil {
					x.ranks = append(x.ranks, r)
				}
			}
		}
		if len(x.ranks) == 0 && d.State == job.Running {
			return fmt.Errorf("couldn't get steps for job %s: it is RUNNING, but its nodes have told nothing of its use yet; ask again in some seconds", id)
		}
		if len(x.ranks) == 0 {
			return fmt.Errorf("couldn't get steps for job %s: it is %s", id, d.State)
		}
		rows = append(rows, x)
	}
	return k.Write(a.Out, &table.View{Now: a.Now()}, rows)
}
