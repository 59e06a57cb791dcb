package slurm

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/cli/jobs"
	"gbatch/internal/cli/table"
	"gbatch/internal/job"
)

// batchStep is the name of what a job runs by itself, beside what srun starts.
const batchStep = "batch"

// stepOf is what a row has where it is a step of a job and not the job.
type stepOf struct {
	name    string // batch, or its number
	state   string
	code    int
	signal  int
	tasks   int
	use     *job.StepUse // nil: not known
	maxNode string       // where the task with most memory ran
	minNode string       // where the one with the least processor time ran
}

// oomSignal is what Slurm shows as the signal of what ended for want of memory.
const oomSignal = 125

// withSteps puts behind each job what ran in it: the job's own command, and what
// srun started. All says: of earlier attempts too.
func withSteps(rows []row, all bool) (out []row) {
	for _, r := range rows {
		out = append(out, r)
		if r.Tasks != nil || r.Private || r.Started.IsZero() && len(r.Steps) == 0 {
			continue
		}
		out = append(out, r.batch())
		for i := range r.Steps {
			if s := &r.Steps[i]; all || s.Attempt == 0 || len(s.Nodes) > 0 {
				out = append(out, r.started(s))
			}
		}
	}
	return out
}

// sub is the row of a step, which has of its job what both have.
func (r *row) sub(s stepOf) row {
	out := row{step: &s}
	out.Job = api.Job{ID: r.ID + "." + s.name, Number: r.Number, User: r.User, Project: r.Project, State: r.State, Cluster: r.Cluster, Submitted: r.Started, Started: r.Started, Ended: r.Ended}
	return out
}

// batch is the job's own command as a step.
func (r *row) batch() row {
	tasks := jobs.NumNodes(&r.Job)
	if len(r.Steps) > 0 || r.spec != nil && r.spec.Launches() {
		tasks = 1
	}
	s := stepOf{name: batchStep, tasks: tasks, state: accounted(stateOf(&r.Job))}
	switch {
	case r.ExitCode == nil:
	case r.Reason == string(job.OOM):
		s.signal = oomSignal
	case *r.ExitCode > 128 && *r.ExitCode < 128+65:
		s.signal = *r.ExitCode - 128
	default:
		s.code = *r.ExitCode
	}
	if s.state == "TIMEOUT" || s.state == "FAILED" && s.signal != 0 {
		s.state = "CANCELLED" // by the end of its job, or by a signal, which sacct shows so
	}
	out := r.sub(s)
	out.Name, out.CPUs, out.GPUs, out.MemBytes, out.NumNodes, out.Nodes = batchStep, r.CPUs, r.GPUs, r.MemBytes, r.NumNodes, r.Nodes
	if u := r.Used; u != nil {
		cpu, node := int64(u.CPUTimeS*1000), ""
		if len(r.Nodes) == 1 {
			node = r.Nodes[0]
		}
		out.step.maxNode, out.step.minNode = node, node
		out.step.use = &job.StepUse{UserMS: cpu, MaxRSSKiB: u.PeakMem >> 10, SumRSSKiB: u.PeakMem >> 10 * int64(tasks), MinCPUMS: cpu / int64(tasks)}
	}
	return out
}

// started is what srun started, as a row.
func (r *row) started(s *api.Step) row {
	x := stepOf{name: fmt.Sprint(s.Number), tasks: s.Tasks, state: jobs.StepState(s), use: s.Use}
	switch x.signal = s.Signal; {
	case s.OOM:
		x.signal = oomSignal
	case s.Signal == 0:
		x.code = s.Code
	}
	out := r.sub(x)
	out.Name, out.CPUs, out.GPUs, out.NumNodes, out.Nodes = s.Name, s.CPUs, float64(s.GPUs), max(len(s.Nodes), 1), s.Nodes
	out.Submitted, out.Started, out.Ended = s.Begun, s.Begun, s.Ended
	if s.Use != nil {
		out.step.maxNode, out.step.minNode = r.nodeOf(s.Use.MaxRSSRank), r.nodeOf(s.Use.MinCPURank)
	}
	return out
}

// nodeOf is where a rank of the job ran.
func (r *row) nodeOf(rank int) string {
	if rank < 0 || rank >= len(r.Nodes) {
		return ""
	}
	return r.Nodes[rank]
}

// Of a job and of a step alike.

func (r *row) exit() string {
	if s := r.step; s != nil {
		return fmt.Sprintf("%d:%d", s.code, s.signal)
	}
	return exitStatus(&r.Job)
}

// jobOnly is a cell that says nothing of steps, as in Slurm.
func jobOnly(of cellOf) cellOf {
	return func(v *table.View, r *row) string {
		if r.step != nil {
			return ""
		}
		return of(v, r)
	}
}

// ofStep is a field about a step, which a job alone has not.
func ofStep(name string, width int, of func(s *stepOf) string) acctField {
	return acct(name, width, func(_ *table.View, r *row) string {
		if r.step == nil {
			return ""
		}
		return of(r.step)
	})
}

// useOf is one about what it used.
func useOf(name string, width int, of func(s *stepOf, u *job.StepUse) string) acctField {
	return ofStep(name, width, func(s *stepOf) string {
		if s.use == nil {
			return ""
		}
		return of(s, s.use)
	})
}

func milliseconds(n int64) string { return elapsed(time.Duration(n) * time.Millisecond) }

var stepFields = []acctField{
	ofStep("NTasks", 8, func(s *stepOf) string { return fmt.Sprint(s.tasks) }),
	acct("MaxRSS", 10, stepMem(func(_ *stepOf, u *job.StepUse) int64 { return u.MaxRSSKiB })),
	useOf("MaxRSSNode", 10, func(s *stepOf, _ *job.StepUse) string { return s.maxNode }),
	useOf("MaxRSSTask", 10, func(_ *stepOf, u *job.StepUse) string { return fmt.Sprint(u.MaxRSSTask) }),
	acct("AveRSS", 10, stepMem(func(s *stepOf, u *job.StepUse) int64 { return u.SumRSSKiB / int64(max(s.tasks, 1)) })),
	useOf("MinCPU", 10, func(_ *stepOf, u *job.StepUse) string { return milliseconds(u.MinCPUMS) }),
	useOf("MinCPUNode", 10, func(s *stepOf, _ *job.StepUse) string { return s.minNode }),
	useOf("MinCPUTask", 10, func(_ *stepOf, u *job.StepUse) string { return fmt.Sprint(u.MinCPUTask) }),
	useOf("AveCPU", 10, func(s *stepOf, u *job.StepUse) string {
		return milliseconds((u.UserMS + u.SystemMS) / int64(max(s.tasks, 1)))
	}),
}

// only keeps, of jobs that were named with a step, that step.
func only(rows []row, ids []string) []row {
	whole, steps := map[string]bool{}, map[string]bool{}
	for _, id := range ids {
		if of, step, ok := cutStep(id); ok {
			steps[of+"."+step] = true
		} else {
			whole[id] = true
		}
	}
	if len(steps) == 0 {
		return rows
	}
	return slices.DeleteFunc(rows, func(r row) bool {
		of, _, _ := strings.Cut(r.ID, ".")
		return !steps[r.ID] && !whole[of]
	})
}

// cutStep splits 12.0 and 12.batch.
func cutStep(id string) (of, step string, ok bool) {
	of, step, ok = strings.Cut(id, ".")
	return of, step, ok && step != ""
}
