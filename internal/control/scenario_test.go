package control

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"

	"gbatch/accounting"
	"gbatch/internal/control/ask"
	"gbatch/internal/control/effects"
	"gbatch/internal/control/standby"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
	"gbatch/sched/words"
)

var _ = flag.Lookup("rewrite") // datadriven's: regenerates testdata

// world is a controller under test with what a store would hold.
type world struct {
	t      *testing.T
	fatal  func(...any)
	c      *Controller
	cfg    Config
	now    sched.Time
	stored map[string]state.Record
	epoch  uint64
	saved  map[string]state.Record // by the command backup
	moved  []effects.Moved         // until the command told
	warm   *standby.Jobs           // in step with what is stored; nil: nobody follows
}

func testConfig() Config {
	policy := sched.DefaultPolicy()
	policy.QOS = map[string]sched.QOS{"alone": {}}
	return Config{
		RunsAlone: []string{"alone"},
		Policy:    policy, Accounting: accounting.DefaultConfig(),
		Projects:   map[string]ask.Project{"vision": {GID: 100}, "secret": {GID: 200}, "east": {Clusters: []int{1}}, "both": {Clusters: []int{1, 2}}},
		DefaultRun: sched.Hour, MaxRun: 30 * sched.Day, DefaultMin: sched.Minute, Grace: 30 * sched.Second,
		SuspectTime: 75 * sched.Second, NodeTimeout: 5 * sched.Minute, RebootTime: 30 * sched.Minute, KeepEnded: sched.Day, KeepCount: 100, MaxQueued: 1000,
	}
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, fatal: t.Fatal, cfg: testConfig(), now: 1_000_000, stored: map[string]state.Record{}}
	w.restart()
	return w
}

func recordKey(r state.Record) string {
	return fmt.Sprintf("%c/%d/%d/%s", r.Kind, r.Job, r.Seq, r.Name)
}

// restart rebuilds the controller from what was stored, as after kill -9.
func (w *world) restart() {
	w.epoch++
	c, err := New(w.cfg, w.epoch)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, k := range slices.Sorted(maps.Keys(w.stored)) {
		if err := c.Load(w.stored[k]); err != nil {
			w.fatal(err)
		}
	}
	if err := c.Loaded(w.now); err != nil {
		w.fatal(err)
	}
	w.c = c
	w.check()
}

func (w *world) store(e effects.Set) effects.Set {
	for _, r := range e.Records {
		if r.Kind == state.KindJob && w.warm != nil {
			if err := w.warm.Put(r.Job, r.Value); err != nil {
				w.t.Fatal(err)
			}
		}
		if r.Value == nil {
			delete(w.stored, recordKey(r))
		} else {
			w.stored[recordKey(r)] = r
		}
	}
	w.moved = append(w.moved, e.Moved...)
	w.check()
	return e
}

func (w *world) check() {
	w.t.Helper()
	if err := w.c.Check(); err != nil {
		w.fatal("invariant:", err)
	}
}

// apply takes one event of any type. It returns the answer, or the refusal.
func (w *world) apply(ev any) any {
	switch ev := ev.(type) {
	case Submit:
		return applyTo(w, ev)
	case Act:
		return applyTo(w, ev)
	case ActTasks:
		return applyTo(w, ev)
	case NodeSync:
		return applyTo(w, ev)
	case Drain:
		return applyTo(w, ev)
	case Reserve:
		return applyTo(w, ev)
	case Unreserve:
		return applyTo(w, ev)
	case Reconfigure:
		return applyTo(w, ev)
	case Forget:
		return applyTo(w, ev)
	case Resize:
		return applyTo(w, ev)
	case SetSecrets:
		return applyTo(w, ev)
	case Restored:
		return applyTo(w, ev)
	case Tick:
		return applyTo(w, ev)
	}
	panic("no event")
}

func applyTo[A any](w *world, ev Event[A]) any {
	answer, refusal, eff := Apply(w.c, w.now, ev)
	w.store(eff)
	if refusal != nil {
		return refusal
	}
	return answer
}

func (w *world) schedule() { w.store(w.c.Schedule(w.now)) }

// TestScenarios runs testdata/*.txt. Regenerate them with -rewrite, and read
// what changed before you keep it.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		w := newWorld(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			w.t, w.fatal = t, t.Fatal
			return w.command(d)
		})
	})
}

// command is one step of a scenario.
//
//	node n1 cpus=8 gpus=2 model=H100 [cluster=1] [instance=x]
//	submit a cpus=1 [gpus=1] [user=u] [project=vision] [hold] [restartable] [limit=60] [uuid=1]; see also world.flow
//	    with "gbatch" of its document below, and as "limit" its maxDuration
//	act cancel 1_[3-9]
//	status 1 running [rank=0] [node=n1] [attempt=1] [code=0] [signal=9] [reason=OOM] [began=0]
//	cancel|hold|release|pause|unpause 1
//	resize 1 [cpus=2] [mem=4] | resized 1 [error=x] | usage
//	prepulls n1 | prepulled n1 job=1 [error=x]
//	schedule
//	wait 10s
//	restart | led: a controller notes that it is there | away 10s: for so long there is none
//	drain n1 reason=x [gpu=0] [evict [in=60]] [reboot] | says n1 [boot=b] [checked] [unhealthy=x] [failed=x] | state n1 | resume n1 [gpu=0] | reserve r in=60 until=120 node=n1 [gpus=0/2] [each=1] [maintenance]
//	forget n1 [giveup]
//	show 1 | told | queue | left 1 | orders n1 | why 1
//	limits [queued=2] [jobs=2] [tasks=9] [templates=1] [dependencies=3] [bytes=99] [daybytes=99]: of each user but root
func (w *world) command(d *datadriven.TestData) string {
	arg := func(name, missing string) string {
		for _, a := range d.CmdArgs {
			if a.Key == name {
				if len(a.Vals) == 0 {
					return "true"
				}
				return a.Vals[0]
			}
		}
		return missing
	}
	number := func(name, missing string) int {
		n, err := strconv.Atoi(arg(name, missing))
		if err != nil {
			w.t.Fatalf("%s: %s: %v", d.Pos, name, err)
		}
		return n
	}
	first := ""
	if len(d.CmdArgs) > 0 {
		first = d.CmdArgs[0].Key
	}
	if out, ok := w.operator(d.Cmd, first, arg, number); ok {
		return out
	}
	if out, ok := w.site(d); ok {
		return out
	}
	if out, ok := w.backup(d, first, arg, number); ok {
		return out
	}
	if out, ok := w.steer(d.Cmd, first, arg, number); ok {
		return out
	}
	switch d.Cmd {
	case "node":
		return w.node(first, number("cpus", "8"), gpus{number("gpus", "0"), arg("model", "H100")}, arg("instance", "i-"+first))
	case "submit":
		spec := &job.Spec{Name: first}
		spec.Request.Resources = job.Resources{CPUs: number("cpus", "1"), GPUs: float64(number("gpus", "0")), CPUMemoryGB: 1, ClusterID: number("cluster", "0")}
		spec.Request.Scheduling.Restartable = arg("restartable", "") != ""
		spec.Request.Scheduling.MaxDuration = job.Duration(number("limit", "0"))
		if n := number("nodes", "1"); n > 1 {
			spec.Gbatch = &job.Gbatch{Nodes: n, StartOrder: arg("order", ""), StopWhen: arg("stop", ""), StopRanks: number("first", "0"), RanksPerNode: number("pernode", "0")}
		}
		if g := arg("group", ""); g != "" { // NODESxGPUS of a model
			count, model, _ := strings.Cut(g, ":")
			nodes, of, _ := strings.Cut(count, "x")
			spec.Request.Resources.GPUModel = strings.Fields(arg("model", ""))
			spec.Gbatch = &job.Gbatch{StartOrder: arg("order", ""), OtherGroups: []job.Group{{Nodes: atoi(w.t, nodes), GPUs: float64(atoi(w.t, of)), CPUs: 1, CPUMemoryGB: 1, GPUModel: strings.Fields(model)}}}
		}
		if s := number("maxqueued", "0"); s > 0 {
			spec.Gbatch = &job.Gbatch{MaxQueued: job.Duration(s)}
		}
		if d.Input != "" {
			w.document(spec, d)
		}
		var id [16]byte
		copy(id[:], arg("uuid", first))
		w.flow(spec, arg, number)
		return w.answer(w.submit(Submit{UUID: id, User: arg("user", "ann"), Project: arg("project", "vision"), Stranger: arg("project", "") == "secret" && arg("user", "") != "eve", Spec: spec, Document: []byte("{}"), Hold: arg("hold", "") != "", Zone: zoneOf(spec)}))
	case "status":
		id := job.RankID{Job: job.Number(atoi(w.t, first)), Rank: uint32(number("rank", "0")), Attempt: uint32(number("attempt", "0"))}
		return w.status(arg("node", ""), node.RankStatus{ID: id, Phase: node.Phase(d.CmdArgs[1].Key), Exit: exitArgs(arg, number)})
	case "cancel", "hold", "uhold", "release", "pause", "unpause":
		if d.Cmd == "unpause" { // "resume" is about nodes
			d.Cmd = "resume"
		}
		return w.answer(w.apply(Act{Action: Action(d.Cmd), Numbers: []job.Number{job.Number(atoi(w.t, first))}, By: arg("by", "ann"), Operator: arg("operator", "") != ""}))
	case "act":
		return w.actTasks(first, d.CmdArgs[1].Key, arg)
	case "schedule":
		w.schedule()
		return w.queue()
	case "wait":
		return w.wait(first)
	case "restart":
		before := w.jobs()
		w.restart()
		if diff := cmp.Diff(before, w.jobs()); diff != "" {
			w.t.Fatalf("%s: the stored jobs differ (-before +after):\n%s", d.Pos, diff)
		}
		return "same jobs\n"
	case "queue":
		return w.queue()
	case "why":
		v, j := w.c.View(w.now), w.c.jobs.get(job.Number(atoi(w.t, first)))
		if j.Tasks != nil {
			return v.WaitingArray(j, v.Summary(j)).String() + "\n"
		}
		return v.Waiting(j).String() + "\n"
	case "resize":
		return w.answer(w.apply(Resize{Number: job.Number(atoi(w.t, first)), By: "ann", MilliCPU: int64(number("cpus", "0")) * 1000, MemMiB: int64(number("mem", "0")) << 10}))
	case "resized":
		return w.resized(job.Number(atoi(w.t, first)), arg("error", ""))
	case "usage":
		return w.usage()
	case "prepulls":
		return w.prepulls(first)
	case "prepulled":
		return w.prepulled(first, job.Number(number("job", "0")), arg("error", ""))
	case "told":
		return w.told()
	case "left":
		return fmt.Sprintf("%d s\n", w.c.jobs.get(job.Number(atoi(w.t, first))).LimitLeft()/sched.Second)
	case "orders":
		return w.orders(first)
	case "timeline":
		return w.timeline(job.Number(atoi(w.t, first)))
	case "show":
		return w.show(job.Number(atoi(w.t, first)))
	}
	w.t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
	return ""
}

func atoi(t *testing.T, s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func exitArgs(arg func(string, string) string, number func(string, string) int) *node.Exit {
	e := &node.Exit{Code: number("code", "0"), Signal: number("signal", "0"), Reason: job.Reason(arg("reason", "")), StartedMS: int64(number("began", "1")), Message: arg("message", "")}
	if e.Reason == "" && e.Signal != 0 {
		e.Reason = job.Signal
	}
	if e.Reason == "" && e.Code != 0 {
		e.Reason = job.ExitCode
	}
	return e
}

// gpus are those of a node.
type gpus struct {
	num   int
	model string
}

func (w *world) node(name string, cpus int, has gpus, instance string) string {
	inv := &node.Inventory{Hostname: name, Cluster: 1, Bridge: true, Gang: true, Together: true, NoHost: true, Ahead: true, CPUs: cpus, MemBytes: 64 << 30}
	for i := range has.num {
		inv.GPUs = append(inv.GPUs, node.GPU{UUID: fmt.Sprintf("GPU-%s-%d", name, i), Model: has.model, Index: i, MemBytes: 80 << 30, NUMA: -1})
	}
	return w.answer(w.apply(NodeSync{Name: name, Instance: instance, Hash: fmt.Sprint(cpus, has.num, has.model), Inventory: inv}))
}

// status is what a host says of a rank. An empty host and attempt 0 are those
// that the job has; only an end has an exit.
func (w *world) status(host string, st node.RankStatus) string {
	n := st.ID.Job
	j := w.c.jobs.get(n)
	if j == nil || (j.Last() == nil && (st.ID.Attempt == 0 || host == "")) {
		return "it has not started\n"
	}
	st.ID.Task = uint32(j.Index)
	if st.ID.Attempt == 0 && j.Last() != nil {
		st.ID.Attempt = j.Try()
	}
	if host == "" {
		host = j.Last().Ranks[st.ID.Rank].Alloc.Node
	}
	if st.Phase == node.PhaseEnded {
		st.Exit.EndedMS = int64(w.now)
		st.Exit.StartedMS *= int64(w.now)
	} else {
		st.Exit = nil
	}
	v := w.c.nodes.get(host)
	w.apply(NodeSync{Name: host, Instance: v.Instance, Hash: v.Hash, Ranks: []node.RankStatus{st}})
	return w.show(n)
}

func (w *world) wait(text string) string {
	n, err := strconv.Atoi(strings.TrimSuffix(text, "s"))
	if err != nil {
		w.t.Fatal(err)
	}
	end := w.now + sched.Time(n)*1000
	for { // as the loop does: tick when it is due
		next := w.c.NextTick(w.now)
		if next == 0 || next > end {
			break
		}
		w.now = max(next, w.now)
		w.apply(Tick{Zone: zoneByName})
		if w.c.Due() {
			w.schedule()
		}
		if again := w.c.NextTick(w.now); again != 0 && again <= w.now {
			w.t.Fatalf("tick at %d leaves %d due: time would stand still", w.now, again)
		}
	}
	w.now = end
	return w.queue()
}

func (w *world) answer(a any) string {
	switch a := a.(type) {
	case *state.Refusal:
		return fmt.Sprintf("refused (%s) %s: %s [%s]\n", a.Code, a.Path, a.Message, a.Hint)
	case Submitted:
		return fmt.Sprintf("job %d %s repeated=%t\n%s", a.Number, a.State, a.Repeated, lines(a.Left))
	case Result:
		return w.answer([]Result{a})
	case []Result:
		if a[0].Refusal != nil {
			return w.answer(a[0].Refusal)
		}
		return fmt.Sprintf("%s -> %s: %s\n", a[0].Before, a[0].After, a[0].Message)
	case drained:
		out := "ok\n"
		for _, j := range a.Evicted {
			out += fmt.Sprintf("%s %s of %s %s\n", j.ID, j.Name, j.User, j.What)
		}
		return out
	case syncAnswer:
		return fmt.Sprintf("want inventory: %t\n", a.WantInventory)
	}
	return "ok\n"
}

func (w *world) queue() string {
	var b strings.Builder
	for j := range w.c.View(w.now).All() {
		fmt.Fprintf(&b, "%d %s %s", j.Number, j.Name, j.State)
		if j.Parent > 0 {
			fmt.Fprintf(&b, " task %s", j.ID())
		}
		if j.State.Active() {
			for _, r := range j.Attempt.Ranks {
				fmt.Fprintf(&b, " %s:%s", r.Alloc.Node, r.Phase)
			}
			if j.State.Active() && !j.Holds() {
				fmt.Fprintf(&b, " behind %d", j.Attempt.Behind)
				if j.Ending != nil {
					fmt.Fprintf(&b, " to be %s: %s", j.Ending.Then, j.Ending.Text)
				}
			}
		}
		if j.Reason != "" {
			fmt.Fprintf(&b, " %s: %s", j.Reason, j.Text)
		}
		b.WriteString("\n")
	}
	if b.Len() == 0 {
		return "no jobs\n"
	}
	return b.String()
}

func (w *world) show(n job.Number) string {
	j := w.c.jobs.get(n)
	s := fmt.Sprintf("%s tries=%d", j.State, j.Tries)
	if j.Last() != nil && j.Last().Partition != "" {
		s += " in " + j.Last().Partition
	}
	if t := j.Tasks; t != nil {
		s = fmt.Sprintf("%s %s", j.State, w.tasks(t))
	}
	if j.Reason != "" {
		s += fmt.Sprintf(" %s (%s): %s", j.Reason, j.Reason.Class(), j.Text)
	}
	if j.Ending != nil {
		s += fmt.Sprintf(" ending with %s then %s", j.Ending.Signal, j.Ending.Then)
	}
	return s + "\n"
}

func (w *world) orders(name string) string {
	v := w.c.View(w.now)
	var b strings.Builder
	for _, n := range v.Node(name).Jobs {
		j := v.Job(n)
		for i, r := range j.Attempt.Ranks {
			if r.Alloc.Node == name && r.Phase != node.PhaseEnded {
				fmt.Fprintf(&b, "%s", j.RankID(i))
				if j.Ending != nil {
					fmt.Fprintf(&b, " stop %s", j.Ending.Signal)
				}
				if len(j.Attempt.Ranks) > 1 && j.MayBegin(i) {
					b.WriteString(" begin")
				}
				if j.Attempt.Paused != "" {
					b.WriteString(" paused")
				}
				if q := r.Asked(); q != nil {
					b.WriteString(" resize to " + words.Size(q.To))
				}
				b.WriteString("\n")
			}
		}
	}
	if b.Len() == 0 {
		return "none\n"
	}
	return b.String()
}

func lines(list []string) (out string) {
	for _, l := range list {
		out += l + "\n"
	}
	return out
}
