package wire

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Between the controller's types and the wire's.

// Time is a time of the controller; the zero time for none.
func Time(t sched.Time) time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(t)).UTC()
}

// licenses are as Slurm writes them.
func licenses(list []sched.License) string {
	var parts []string
	for _, x := range list {
		parts = append(parts, fmt.Sprintf("%s:%d", x.Name, x.Count))
	}
	return strings.Join(parts, ",")
}

// Job is a job as one line of a list; private says that the caller may not
// see what is its owner's alone.
func Job(v *state.View, j *state.Job, private bool) api.Job {
	out := api.Job{
		ID: j.ID(), Number: j.Number, UUID: uuid.UUID(j.UUID).String(), Name: j.Name, User: j.Owner.User, Project: j.Owner.Project,
		State: j.Status(), Reason: string(j.Reason), ReasonText: j.Text,
		Submitted: Time(j.Submitted), Started: Time(j.Started), Ended: Time(j.Ended),
		LimitS: int64(j.LimitNow() / 1000), LimitMinS: int64(j.Request.LimitMin / 1000), Licenses: licenses(j.Request.Shape.Licenses), Cluster: j.Request.Shape.Cluster, Partition: strings.Join(j.Request.Shape.Partitions, ","), Priority: int64(j.Request.Priority), QOS: j.Owner.QOS,
	}
	if j.Waits != nil && j.State.Pending() {
		out.Dependency = j.Waits.String()
	}
	out.Successor, out.Template, out.Comment = j.Next, j.Template, j.Request.Comment
	if x := j.Restart; x != nil {
		out.Restart = &api.RestartInfo{InitialJobUUID: uuid.UUID(x.Initial).String(), RestartCount: x.Count, Of: x.Of}
	}
	sh := j.Request.Shape
	out.NumNodes = sh.Ranks()
	out.CPUs = int(sh.Total(func(s *sched.Shape) int64 { return s.MilliCPU }) / 1000)
	out.MemBytes = sh.Total(func(s *sched.Shape) int64 { return s.MemMiB }) << 20
	out.GPUs = float64(sh.Total(func(s *sched.Shape) int64 { return s.MilliGPU })) / 1000
	if j.Parent > 0 {
		out.Parent, out.Task = j.Parent, &j.Index
	}
	switch {
	case j.Tasks != nil && j.State != job.OnHold: // see tasksToAPI
	case j.Parent > 0 && j.Number == 0 && j.State == job.Queued:
		out.Reason, out.ReasonText = string(state.CodeArrayLimit), "it comes into the queue when others of its array have started or ended"
	case j.State == job.Queued:
		Why(&out, j, v.Waiting(j))
	case j.State == job.OnHold:
		out.Reason, out.ReasonText = Held(j)
	case j.Ending != nil:
		out.Reason, out.ReasonText = string(j.Ending.Reason), j.Ending.Text
	case j.State == job.Running && j.Attempt.Paused != "":
		out.Reason, out.ReasonText = "Paused", fmt.Sprintf("paused by %s: `gcancel --resume` lets it go on", j.Attempt.Paused)
	}
	if at := j.Last(); at != nil && !j.State.Pending() {
		fromAttempt(&out, v, j, at)
	}
	out.Ending = ending(j)
	if private {
		return others(out)
	}
	return out
}

// Held is why a job is on hold, in a word and in a sentence with what lets it go on.
func Held(j *state.Job) (code, text string) {
	switch j.Reason {
	case job.Prolog:
		code = string(job.Prolog)
	case job.ByAdmin:
		return "JobHeldAdmin", fmt.Sprintf("%s, an operator, whom to ask: only operators let it go on, by `gcancel --release %s`", cmp.Or(j.Text, "held"), j.ID())
	case job.Server, job.NodeFail:
		code = "RESTORED"
	default:
		code = "JobHeldUser"
	}
	return code, fmt.Sprintf("%s; `gcancel --release %s` lets it go on", cmp.Or(j.Text, "held"), j.ID())
}

// ending is how a job is being ended, nil if it is not.
func ending(j *state.Job) *api.Ending {
	switch e := j.Ending; {
	case !j.Completing():
		return nil
	case e == nil:
		return &api.Ending{}
	case e.Since == 0 || j.Tasks != nil: // its tasks were told one by one
		return &api.Ending{Since: Time(e.Since), Then: e.Then}
	default:
		return &api.Ending{Since: Time(e.Since), Kill: Time(e.Since + e.Grace), Then: e.Then}
	}
}

// others is what is shown of a job to those who may not see it: that it is there,
// whose it is, and what it holds. It names what is shown, so that nothing that
// is added later is shown by mistake.
func others(j api.Job) api.Job {
	return api.Job{
		ID: j.ID, Number: j.Number, Parent: j.Parent, Task: j.Task, UUID: j.UUID, Name: "job-" + j.UUID[:6], Private: true,
		User: j.User, Project: j.Project, QOS: j.QOS, State: j.State,
		Submitted: j.Submitted, Started: j.Started, Ended: j.Ended, LimitS: j.LimitS,
		GPUs: j.GPUs, CPUs: j.CPUs, MemBytes: j.MemBytes, Cluster: j.Cluster, Partition: j.Partition, NumNodes: j.NumNodes, Nodes: j.Nodes, Ending: j.Ending,
	}
}

// Why says why a job waits, and when it is expected to start. A time before which
// it may not is no such expectation, but one at which a template makes a job is.
func Why(out *api.Job, j *state.Job, r sched.Reason) {
	out.Reason, out.ReasonText = string(r.Code), r.Text
	if r.Code != sched.CodeBeginTime || j.Cron != nil {
		out.EstStart = Time(r.At)
		return
	}
	out.Begin = Time(r.At)
	out.ReasonText += ", " + out.Begin.UTC().Format(time.RFC3339)
}

// fromAttempt fills in where a job is or was, and what it has there: more than
// it asked for if that was all of a node's.
func fromAttempt(out *api.Job, v *state.View, j *state.Job, at *state.Attempt) {
	var gpus, cpu, mem int64
	if at.Partition != "" {
		out.Partition = at.Partition
	}
	seen := map[string]bool{}
	for _, r := range at.Ranks {
		gpus, cpu, mem = gpus+r.Alloc.MilliGPU(), cpu+r.Alloc.MilliCPU, mem+r.Alloc.MemMiB
		if !seen[r.Alloc.Node] {
			out.Nodes = append(out.Nodes, r.Alloc.Node)
		}
		seen[r.Alloc.Node] = true
		if n := v.Node(r.Alloc.Node); n != nil {
			out.Cluster = n.Inventory.Cluster
		}
	}
	if j.State.Final() {
		if e := at.Decisive().Exit; e != nil {
			code := e.Code
			if j.State == job.Finished {
				code = 0 // of a gang that is done with rank 0, the others were ended
			}
			out.ExitCode = &code
		}
	}
	out.GPUs, out.CPUs, out.MemBytes = float64(gpus)/1000, int(cpu/1000), mem<<20
}

// Allocation is what a rank holds.
func Allocation(a sched.Allocation) api.Allocation {
	out := api.Allocation{Node: a.Node, CPUs: int(a.MilliCPU / 1000), MemBytes: a.MemMiB << 20}
	for _, g := range a.GPUs {
		out.GPUs = append(out.GPUs, api.GPUShare{UUID: g.UUID, Milli: g.Milli})
	}
	return out
}

// Attempt is one try at a job.
func Attempt(a *state.Attempt) api.Attempt {
	out := api.Attempt{Attempt: a.Attempt, Start: Time(a.Start), End: Time(a.End)}
	for _, r := range a.Ranks {
		rank := api.Rank{
			Allocation: Allocation(r.Alloc), Phase: string(r.Phase), Cores: r.Cores, Image: r.Image, Ports: r.Ports, Exit: r.Exit,
		}
		if q := r.Resize; q != nil {
			to := Allocation(q.To)
			rank.Resize = &api.RankResize{CPUs: to.CPUs, MemBytes: to.MemBytes, Failed: q.Failed}
		}
		out.Ranks = append(out.Ranks, rank)
	}
	return out
}

// Node is a node with what is free of it.
func Node(v *state.View, n *state.Node) api.Node {
	inv := n.Inventory
	out := api.Node{
		Name: n.Name, Cluster: inv.Cluster, Version: inv.Version, Hostname: inv.Hostname, Driver: inv.Driver, Features: inv.Features, Partitions: n.Partitions,
		Simulated: inv.Simulated, Jobs: len(n.Jobs), LastSeen: Time(n.LastSeen),
		CPUs: api.Use{Total: int64(inv.CPUs)}, MemBytes: api.Use{Total: inv.MemBytes},
	}
	for _, r := range inv.Storage {
		out.Storage = append(out.Storage, api.NodeStorage{Name: r.Name, ReadOnly: r.ReadOnly, Away: r.Away})
	}
	out.State, out.Reason = n.State()
	out.Since, out.Reboot = Time(n.Since()), n.Reboot.Stage()
	if inv.CUDA > 0 {
		out.CUDA = fmt.Sprintf("%d.%d", inv.CUDA/100, inv.CUDA%100)
	}
	usedGPU, byJob := map[string]int64{}, map[string]job.Number{}
	out.CPUs.Free, out.MemBytes.Free = out.CPUs.Total, out.MemBytes.Total
	for _, num := range n.Jobs {
		j := v.Job(num)
		for _, r := range j.Attempt.Ranks {
			if r.Alloc.Node != n.Name {
				continue
			}
			out.CPUs.Free -= r.Alloc.MilliCPU / 1000
			out.MemBytes.Free -= r.Alloc.MemMiB << 20
			for _, g := range r.Alloc.GPUs {
				usedGPU[g.UUID] += g.Milli
				if byJob[g.UUID] == 0 {
					byJob[g.UUID] = num
				}
			}
		}
	}
	for _, g := range inv.GPUs {
		a := api.GPU{UUID: g.UUID, Index: g.Index, Model: g.Model, MemBytes: g.MemBytes, NUMA: g.NUMA, Unhealthy: n.OutOfService(g),
			FreeMilli: 1000 - usedGPU[g.UUID], Job: byJob[g.UUID]}
		if g.ComputeCap > 0 {
			a.ComputeCap = fmt.Sprintf("%d.%d", g.ComputeCap/10, g.ComputeCap%10)
		}
		out.GPUs = append(out.GPUs, a)
	}
	return out
}

// Event reads one line of a job's timeline as it is stored.
func Event(text []byte) (api.Event, error) {
	var l state.Line
	if err := json.Unmarshal(text, &l); err != nil {
		return api.Event{}, err
	}
	return api.Event{Time: Time(l.Time), State: l.State, Message: l.Message}, nil
}

// BilledHours is thousandths of a GPU x milliseconds as hours of one.
func BilledHours(v int64) float64 { return float64(v) / 1000 / 3_600_000 }

// Encode is a value of our own types, which always encode.
func Encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// Refused is a refusal as the wire has it: the codes are the same.
func Refused(r *state.Refusal) *api.Error {
	e := api.Errorf(string(r.Code), "%s", r.Message).WithHint(r.Hint)
	if r.Path != "" {
		e = e.WithProblems(api.Problem{Path: r.Path, Message: r.Message})
		e.Message = "refused:"
	}
	return e
}
