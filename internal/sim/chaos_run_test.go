package sim

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"gbatch/accounting"
	"gbatch/internal/control"
	"gbatch/internal/control/amend"
	"gbatch/internal/control/ask"
	"gbatch/internal/control/effects"
	"gbatch/internal/control/standby"
	"gbatch/internal/job"
	"gbatch/internal/job/indexes"
	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Chaos is a random history: jobs of all kinds on a few nodes that fall silent,
// come back, lose their state or are drained, with a controller that is killed
// at any moment and starts again from its records. Everything follows from Seed.
type Chaos struct {
	Seed  uint64
	Nodes int
	Steps int
	Rules control.Config // zero: ChaosRules
	Calm  bool           // after the steps nothing more befalls anybody, and every job must come to its end
}

// ChaosRules are those of a small site in which everything is allowed.
func ChaosRules() control.Config {
	p := sched.DefaultPolicy()
	p.QOS = map[string]sched.QOS{"low": {}, "high": {Priority: 1000, Preempts: []string{"low"}}}
	p.DefaultQOS, p.BackfillReservations, p.Estimates = "low", 4, sched.ByPredicted
	p.Weights.Small = 100
	return control.Config{
		Policy: p, Accounting: accounting.DefaultConfig(), Projects: map[string]ask.Project{"a": {}, "b": {}},
		DefaultRun: sched.Hour, Grace: 30 * sched.Second, SuspectTime: 75 * sched.Second, NodeTimeout: 5 * sched.Minute,
		KeepEnded: sched.Day, KeepCount: 1000, MaxQueued: 10_000,
	}
}

// Tally is what happened in a random history.
type Tally struct {
	Submitted, Ended, Started int
	Restarts, Compared        int // of these, the ones whose first plan was compared with the old controller's
	Silences, Losses          int
	Awaited, Halted           int // jobs that started after others, and that were halted
	Resized, Days             int // days of somebody's account that were compared
	Gangs, Corr               int // ranks of gangs that began, and tasks that started after others of their index
	Made, Idle                int // jobs made by templates, and jobs ended for idle GPUs
}

// chaos is a history under way.
type chaos struct {
	cfg      Chaos
	rng      *rand.Rand
	c        *control.Controller
	now      sched.Time
	epoch    uint64
	stored   map[string]state.Record
	follower *standby.Jobs // in step with what is stored
	nodes    []*fakeNode
	tally    Tally
	err      error

	asked  map[job.Number]*job.Gbatch // of each job
	arrays []job.Number
	idle   map[job.Number]bool // jobs whose GPUs did nothing in some attempt
	ready  map[job.RankID]bool // ranks of gangs that were ready once
	begun  map[job.RankID]bool // and those whose program began
	brief  bool                // what begins runs briefly
}

// fakeNode is a node as it is, whatever the controller believes.
type fakeNode struct {
	Node
	instance int
	silent   sched.Time // until then it says nothing; 0: it speaks
	runs     map[job.RankID]sched.Time
	ready    map[job.RankID]bool // they wait for the others of their gang
	stops    map[job.RankID]bool // it was sent the signal to end
}

// Run lives the history, and returns the first invariant that does not hold.
func (cfg Chaos) Run() (Tally, error) {
	if cfg.Rules.Projects == nil {
		cfg.Rules = ChaosRules()
	}
	x := &chaos{cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, 1)), now: nearMidnight, stored: map[string]state.Record{}, asked: map[job.Number]*job.Gbatch{}, idle: map[job.Number]bool{}, ready: map[job.RankID]bool{}, begun: map[job.RankID]bool{}}
	for _, n := range gpuNodes(cfg.Nodes, 4, "H100") {
		x.nodes = append(x.nodes, &fakeNode{Node: n, runs: map[job.RankID]sched.Time{}, ready: map[job.RankID]bool{}, stops: map[job.RankID]bool{}})
	}
	x.c = x.start()
	for i := 0; i < cfg.Steps && x.err == nil; i++ {
		x.step()
		if i%16 == 0 || i == cfg.Steps-1 {
			x.fail(x.checkUsage())
		}
		if x.err != nil {
			x.err = fmt.Errorf("seed %d, step %d: %w", cfg.Seed, i, x.err)
		}
	}
	x.tally.Halted = x.halted()
	if cfg.Calm && x.err == nil {
		x.calm()
	}
	return x.tally, x.err
}

// start is a controller on the records that are stored: every other one knows the jobs, as it has followed.
func (x *chaos) start() *control.Controller {
	x.epoch++
	followed := x.tally.Restarts%2 == 1
	if !followed {
		x.follower = standby.New()
	}
	c, err := control.Of(x.cfg.Rules, x.epoch, x.follower)
	x.follower = standby.New()
	for _, k := range slices.Sorted(maps.Keys(x.stored)) {
		r := x.stored[k]
		if err == nil && r.Kind == state.KindJob {
			err = x.follower.Put(r.Job, r.Value)
		}
		if err == nil && !(followed && r.Kind == state.KindJob) {
			err = c.Load(r)
		}
	}
	if err == nil {
		err = c.Loaded(x.now)
	}
	x.fail(err)
	return c
}

func (x *chaos) fail(err error) {
	if x.err == nil {
		x.err = err
	}
}

// done makes a step's records durable and checks what must hold after it.
func (x *chaos) done(e effects.Set) {
	for _, r := range e.Records {
		if r.Kind == state.KindJob {
			x.fail(x.follower.Put(r.Job, r.Value))
		}
		k := fmt.Sprintf("%c/%d/%d/%s", r.Kind, r.Job, r.Seq, r.Name)
		if r.Value == nil {
			delete(x.stored, k)
		} else {
			x.stored[k] = r
		}
	}
	x.fail(x.c.Check())
	x.fail(x.checkEnds(e.Changed))
}

func apply[A any](x *chaos, ev control.Event[A]) (A, *state.Refusal) {
	answer, refusal, eff := control.Apply(x.c, x.now, ev)
	x.done(eff)
	return answer, refusal
}

// one in n.
func (x *chaos) oneIn(n int) bool { return x.rng.IntN(n) == 0 }

func (x *chaos) step() {
	switch x.rng.IntN(12) {
	case 0, 1, 2:
		x.submit()
	case 3:
		x.act()
		x.resize()
	case 4:
		x.trouble()
	case 5:
		x.restart()
	case 6, 7, 8:
		x.round()
	default:
		x.pass()
	}
}

func (x *chaos) submit() {
	gpus := []int64{0, 250, 500, 1000, 2000, 4000}[x.rng.IntN(6)]
	shape := &sched.Shape{MilliGPU: gpus, MilliCPU: int64(1+x.rng.IntN(16)) * 1000, MemMiB: int64(1+x.rng.IntN(64)) << 10}
	if gpus >= 1000 && x.oneIn(4) {
		shape.Nodes = 1 + x.rng.IntN(3)
	}
	shape.Exclusive, shape.AllMem = x.oneIn(12), x.oneIn(12)
	req := &state.Request{Shape: shape, Limit: sched.Time(1+x.rng.IntN(120)) * sched.Minute, MinRun: sched.Minute, Restartable: x.oneIn(2)}
	if x.oneIn(8) {
		req.Bucket, req.BucketMax = "few", 2
	}
	var tasks *job.Tasks
	if x.oneIn(6) {
		tasks = x.tasks()
	}
	if x.oneIn(3) {
		x.retries(req)
	}
	ev := control.Submit{
		User: []string{"ann", "bob", "eve"}[x.rng.IntN(3)], Project: []string{"a", "b"}[x.rng.IntN(2)], Request: req,
		Spec: &job.Spec{Gbatch: &job.Gbatch{QOS: []string{"low", "low", "high"}[x.rng.IntN(3)], Tasks: tasks}}, Document: []byte("{}"), Hold: x.oneIn(10),
	}
	x.gang(req)
	x.idleGPU(req)
	ev.UUID[0], ev.UUID[1], ev.UUID[2] = byte(x.tally.Submitted), byte(x.tally.Submitted>>8), 1
	x.after(&ev)
	x.afterTasks(&ev)
	x.replaceOrRepeat(&ev)
	x.tally.Submitted++
	x.send(ev)
}

func (x *chaos) act() {
	n := job.Number(1 + x.rng.IntN(max(2*x.tally.Submitted, 1))) // tasks have numbers, too
	how := []control.Action{control.Cancel, control.Hold, control.Release, control.Release, control.Halt, control.Halt, control.Requeue, control.Update}[x.rng.IntN(8)]
	if first := x.rng.IntN(8); x.oneIn(3) {
		apply(x, control.ActTasks{Act: control.Act{Action: how, By: "ann"}, Parent: n, Indexes: indexes.Set{{First: first, Last: first + x.rng.IntN(3)}}})
		return
	}
	apply(x, control.Act{Action: how, Numbers: []job.Number{n}, By: "ann", Operator: true, Change: amend.Change{Priority: new(x.rng.IntN(100))}})
}

// trouble befalls a node.
func (x *chaos) trouble() {
	n := x.nodes[x.rng.IntN(len(x.nodes))]
	switch x.rng.IntN(4) {
	case 0: // cut off, for less than a node is given or for more
		n.silent = x.now + sched.Time(30+x.rng.IntN(900))*sched.Second
		x.tally.Silences++
	case 1: // its disk is gone
		n.instance++
		n.lose()
		x.tally.Losses++
	case 2:
		apply(x, control.Drain{Node: n.Name, Reason: "test"})
	case 3:
		apply(x, control.Drain{Node: n.Name})
	}
}

// pass lets time pass, on the nodes too.
func (x *chaos) pass() {
	x.now += sched.Time(1+x.rng.IntN(120)) * sched.Second
	apply(x, control.Tick{})
	for _, n := range x.nodes {
		x.sync(n)
	}
}

// sync is a node's word, and its obedience: what it is not to run any more ends,
// and what it is to run begins.
func (x *chaos) sync(n *fakeNode) {
	lease := x.cfg.Rules.NodeTimeout * 8 / 10
	if n.silent > x.now {
		if v := x.view(n); v != nil && x.now-v.LastSeen > lease {
			n.lose() // it ends them by itself: others may have them
		}
		return
	}
	n.silent = 0
	var words []node.RankStatus
	for _, id := range sortedRanks(n.ready) {
		words = append(words, node.RankStatus{ID: id, Phase: node.PhaseReady})
	}
	for _, id := range sortedRanks(n.runs) {
		st := node.RankStatus{ID: id, Phase: node.PhaseRunning, Stopping: n.stops[id]}
		if q := x.resizing(id); q != nil {
			st.Resize = &node.Resized{Seq: q.Seq}
			if x.oneIn(4) {
				st.Resize.Error = "it uses more"
			}
			x.tally.Resized++
		}
		if n.runs[id] <= x.now {
			st.Phase = node.PhaseEnded
			st.Exit = &node.Exit{StartedMS: int64(x.now), EndedMS: int64(x.now)}
			switch {
			case n.stops[id]:
				st.Exit.Reason = job.Preempted
				delete(n.stops, id)
			case x.oneIn(5):
				st.Exit.Code, st.Exit.Reason = 1, []job.Reason{job.ExitCode, job.NodeFail, job.OOM, job.Server}[x.rng.IntN(4)]
			}
			if x.oneIn(10) && !st.Exit.OK() {
				st.Exit.StartedMS = 0 // it never ran
			}
			x.tally.Ended++
		}
		words = append(words, st)
	}
	_, r := apply(x, control.NodeSync{Name: n.Name, Instance: fmt.Sprint(n.instance), Hash: "1", Inventory: &n.Inventory, Ranks: words, Loads: x.loads(n)})
	if r != nil {
		x.fail(errors.New(r.Message))
	}
	x.obey(n)
}

func (x *chaos) view(n *fakeNode) *state.Node { return x.c.View(x.now).Node(n.Name) }

func (x *chaos) obey(n *fakeNode) {
	want := map[job.RankID]*state.Job{}
	v := x.c.View(x.now)
	host := v.Node(n.Name)
	if host == nil {
		return
	}
	for _, num := range host.Jobs {
		j := v.Job(num)
		for i := range j.Attempt.Ranks {
			if j.Attempt.Ranks[i].Alloc.Node == n.Name && j.Attempt.Ranks[i].Phase != node.PhaseEnded {
				want[j.RankID(i)] = j
			}
		}
	}
	for id := range n.runs { // a set: order does not matter
		if want[id] == nil {
			delete(n.runs, id)
		}
	}
	for id := range n.ready {
		if want[id] == nil {
			delete(n.ready, id)
		}
	}
	for _, num := range host.Jobs {
		j := v.Job(num)
		for i := range j.Attempt.Ranks {
			id := j.RankID(i)
			switch _, runs := n.runs[id]; {
			case want[id] == nil || j.Attempt.Ranks[i].Alloc.Node != n.Name:
			case j.Ending != nil && runs && !n.stops[id]:
				n.stops[id] = true
				n.runs[id] = x.now + sched.Time(x.rng.IntN(60))*sched.Second
			case j.Ending != nil && !runs:
				n.runs[id] = x.now
				delete(n.ready, id)
			case !runs && x.waits(n, j, i):
			case !runs:
				x.mayStart(j)
				x.begin(n, j, i)
				n.runs[id] = x.now + min(j.LimitLeft(), x.length())
				x.tally.Started++
			}
		}
	}
}

// length is how long a program runs that is let.
func (x *chaos) length() sched.Time {
	if x.brief {
		return sched.Time(x.rng.IntN(30)) * sched.Second
	}
	return sched.Time(x.rng.IntN(1800)) * sched.Second
}

func (x *chaos) round() {
	if x.c.Due() {
		x.done(x.c.Schedule(x.now))
	}
}

// restart kills the controller. Where no node is in doubt, which only contact
// can tell, the new one must plan exactly as the old one would have.
func (x *chaos) restart() {
	old := x.c
	x.c = x.start()
	x.tally.Restarts++
	view := old.View(x.now)
	for n := range view.Nodes.All() {
		if n.Suspect || n.Lost {
			return
		}
	}
	if x.err != nil || !old.Due() {
		return
	}
	x.tally.Compared++
	old.Schedule(x.now)
	x.done(x.c.Schedule(x.now))
	was, _ := old.Plan()
	is, _ := x.c.Plan()
	if a, b := planText(was), planText(is); a != b {
		x.fail(fmt.Errorf("after a restart the plan is another\nbefore: %s\nafter:  %s", a, b))
	}
}

func planText(p *sched.Plan) string {
	return fmt.Sprintf("starts %+v reservations %+v halts %+v rejects %+v", p.Starts, p.Reservations, p.Halts, p.Rejects)
}
