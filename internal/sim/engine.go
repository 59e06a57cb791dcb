package sim

import (
	"container/heap"
	"encoding/binary"
	"fmt"
	"slices"

	"gbatch/internal/control"
	"gbatch/internal/control/ask"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/sched"
)

// config is one replay.
type config struct {
	Control  control.Config // MaxQueued and the projects of the jobs are set by Run
	Nodes    []Node
	Jobs     []Job
	Epoch    int64 // Unix seconds of time 0
	Batch    bool  // one round for all that happens in one moment, instead of one after each event
	Known    bool  // tell the scheduler the true run times
	OneShot  bool  // a job that does not start at once is dropped
	Check    bool  // verify every invariant after every step
	Nanos    func() int64
	Progress func(done, all int)
}

// outcome is what became of a job.
type outcome struct {
	Start   sched.Time // -1: it never started
	End     sched.Time // -1: it never ended
	Refused string     // why it was not taken, was dropped, or did not start until all else was over
}

// result is a finished replay: one outcome for each job, in their order.
type result struct {
	Outcomes []outcome
	Rounds   int
	RoundNS  []int64      // duration of each round, where the clock was lent
	Missed   []sched.Time // start less first estimate, of the jobs that had one
	WallNS   int64
	Held     held // after the last submission
	LastEnd  sched.Time
	Cores    int64 // of all nodes, thousandths
	GPUs     int64
}

// base keeps the replay's moments above 0, which means "never" to the controller.
const base = sched.Day

// never is longer than any replay, and small enough to add to.
const never = sched.Never / 8

type engine struct {
	cfg    config
	c      *control.Controller
	origin sched.Time // of the log's time 0
	now    sched.Time
	ends   endHeap
	due    []ending // that are over and have not been told
	next   int      // of the jobs to be submitted
	index  []int    // of cfg.Jobs, by number
	farm   farm
	held   bool // what runs after the last submission was taken down
	idle   int  // jobs that ended since the last tick
	done   int  // jobs that ended
	seq    int  // of the last start
	out    result
	spec   job.Spec
}

// run replays the workload to its end.
func run(cfg config) (result, error) {
	e, err := newEngine(cfg)
	if err != nil {
		return result{}, err
	}
	began := e.nanos()
	for e.step() {
		if err := e.after(); err != nil {
			return result{}, err
		}
	}
	e.left()
	e.out.WallNS = e.nanos() - began
	e.out.Cores, e.out.GPUs = e.farm.cores, e.farm.gpus
	return e.out, e.farm.err
}

func newEngine(cfg config) (*engine, error) {
	cc := cfg.Control
	cc.Projects = map[string]ask.Project{}
	for i := range cfg.Jobs {
		cc.Projects[cfg.Jobs[i].Project] = ask.Project{}
	}
	cc.MaxQueued = len(cfg.Jobs) + 1
	if cc.SuspectTime == 0 {
		cc.SuspectTime, cc.NodeTimeout = never, never
	}
	c, err := control.New(cc, 1)
	if err != nil {
		return nil, err
	}
	e := &engine{cfg: cfg, c: c, origin: sched.Time(cfg.Epoch) * sched.Second}
	if e.origin == 0 {
		e.origin = base
	}
	e.now = e.origin
	e.out.Outcomes = make([]outcome, len(cfg.Jobs))
	e.index = make([]int, 1, len(cfg.Jobs)+1)
	e.farm.init(cfg.Nodes)
	for i := range cfg.Nodes {
		n := &cfg.Nodes[i]
		if _, r, _ := control.Apply(c, e.now, control.NodeSync{Name: n.Name, Instance: "sim", Hash: "1", Inventory: &n.Inventory}); r != nil {
			return nil, fmt.Errorf("node %s: %s", n.Name, r.Message)
		}
	}
	return e, nil
}

func (e *engine) nanos() int64 {
	if e.cfg.Nanos == nil {
		return 0
	}
	return e.cfg.Nanos()
}

// step lets the next thing happen: an end, a submission, or time passing to the
// moment at which the plan wants to be looked at. It returns false when nothing
// is left.
func (e *engine) step() bool {
	at := sched.Never
	if len(e.ends) > 0 {
		at = e.ends[0].at
	}
	if len(e.due) > 0 {
		at = e.now
	}
	if e.next < len(e.cfg.Jobs) {
		at = min(at, e.origin+e.cfg.Jobs[e.next].Submit)
	}
	if at == sched.Never {
		return false
	}
	if t := e.c.NextTick(e.now); t > e.now && t < at {
		e.now = t
		control.Apply(e.c, e.now, control.Tick{})
		return true
	}
	e.now = at
	e.happen()
	if e.idle >= 256 {
		e.idle = 0
		control.Apply(e.c, e.now, control.Tick{}) // forgets jobs that ended
	}
	return true
}

// happen handles what happens next in this moment. In a batch that is all of it.
// Otherwise it is one event: submissions before ends, ends in the order of the
// starts. Ends which the plan foresees at this very moment go with the first
// event: their room is free, whoever is told of it first. This is the order of
// the simulator that the published waits come from.
func (e *engine) happen() {
	for len(e.ends) > 0 && e.ends[0].at <= e.now {
		e.due = append(e.due, heap.Pop(&e.ends).(ending))
	}
	firstEnd := len(e.due) > 0 && !e.due[0].foreseen
	e.due = slices.DeleteFunc(e.due, func(x ending) bool {
		if x.foreseen || e.cfg.Batch {
			e.end(x)
		}
		return x.foreseen || e.cfg.Batch
	})
	for e.next < len(e.cfg.Jobs) && e.origin+e.cfg.Jobs[e.next].Submit <= e.now {
		e.submit(e.next)
		e.next++
		if !e.cfg.Batch {
			return
		}
	}
	if firstEnd && !e.cfg.Batch {
		e.end(e.due[0])
		e.due = e.due[1:]
	}
}

func (e *engine) submit(i int) {
	j := &e.cfg.Jobs[i]
	spec := &e.spec
	if j.QOS != "" {
		spec = &job.Spec{Gbatch: &job.Gbatch{QOS: j.QOS}}
	}
	ev := control.Submit{User: j.User, Project: j.Project, Spec: spec, Operator: true, Request: j.request(&e.cfg)}
	if e.cfg.Known {
		ev.Expected = max(j.Run, 1)
	}
	binary.BigEndian.PutUint64(ev.UUID[:], uint64(i+1))
	o := &e.out.Outcomes[i]
	o.Start, o.End = -1, -1
	switch ans, refusal, _ := control.Apply(e.c, e.now, ev); {
	case refusal != nil:
		o.Refused = refusal.Message
	case int(ans.Number) != len(e.index):
		panic(fmt.Sprintf("sim: job number %d after %d", ans.Number, len(e.index)-1))
	default:
		e.index = append(e.index, i)
	}
}

// after runs a round if one is due, and takes down what it started.
func (e *engine) after() error {
	if e.c.Due() {
		e.round()
	}
	if e.next == len(e.cfg.Jobs) && !e.held {
		e.held, e.out.Held = true, e.farm.held()
	}
	if e.farm.err != nil {
		return e.farm.err
	}
	if e.cfg.Check {
		if err := e.c.Check(); err != nil {
			return fmt.Errorf("at %d s: %w", (e.now-e.origin)/sched.Second, err)
		}
	}
	return nil
}

func (e *engine) round() {
	began := e.nanos()
	eff := e.c.Schedule(e.now)
	if e.cfg.Nanos != nil {
		e.out.RoundNS = append(e.out.RoundNS, e.nanos()-began)
	}
	e.out.Rounds++
	e.out.Missed = append(e.out.Missed, eff.Missed...)
	plan, _ := e.c.Plan()
	for _, s := range plan.Starts {
		e.start(job.Number(s.Job), s.Ranks)
	}
	for _, r := range plan.Rejects {
		e.out.Outcomes[e.index[r.Job]].Refused = r.Reason.Text
	}
}

func (e *engine) start(n job.Number, ranks []sched.Allocation) {
	i := e.index[n]
	j := &e.cfg.Jobs[i]
	e.farm.take(ranks)
	o := &e.out.Outcomes[i]
	o.Start = e.now - e.origin
	if j.Run >= never {
		return
	}
	limit := j.request(&e.cfg).Limit
	e.seq++
	heap.Push(&e.ends, ending{
		at: e.now + min(j.Run, limit), seq: e.seq, job: n, ranks: ranks,
		foreseen: j.Run >= limit || e.cfg.Known,
	})
}

// end tells the controller, as the node would, that a job's ranks have ended.
func (e *engine) end(x ending) {
	i := e.index[x.job]
	e.farm.give(x.ranks)
	for r, a := range x.ranks {
		control.Apply(e.c, e.now, control.NodeSync{Name: a.Node, Instance: "sim", Hash: "1", Ranks: []node.RankStatus{{
			ID: job.RankID{Job: x.job, Attempt: 1, Rank: uint32(r)}, Phase: node.PhaseEnded,
			Exit: &node.Exit{StartedMS: int64(e.origin + e.out.Outcomes[i].Start), EndedMS: int64(e.now)},
		}}})
	}
	o := &e.out.Outcomes[i]
	o.End = e.now - e.origin
	e.out.LastEnd = max(e.out.LastEnd, o.End)
	e.idle++
	e.done++
	if p := e.cfg.Progress; p != nil && e.done%1024 == 0 {
		p(e.done, len(e.cfg.Jobs))
	}
}

// ending is a rank's end that is bound to come.
type ending struct {
	at    sched.Time
	seq   int
	job   job.Number
	ranks []sched.Allocation

	foreseen bool // the plan reckons with it at this very moment
}

type endHeap []ending

func (h endHeap) Len() int { return len(h) }
func (h endHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}
func (h endHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *endHeap) Push(x any)   { *h = append(*h, x.(ending)) }
func (h *endHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
