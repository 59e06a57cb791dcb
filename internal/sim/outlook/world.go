package outlook

import (
	"container/heap"
	"slices"

	"gbatch/internal/control"
	"gbatch/internal/control/picture"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/sim"
	"gbatch/internal/state"
	"gbatch/sched"
	"gbatch/sched/predict"
)

// grain is how exactly is looked: what happens within it happens together, so that a
// day is at most 1,440 rounds, however many jobs end in it.
const grain = sched.Minute

// never is longer than any look ahead, and small enough to add to.
const never = sched.Never / 8

// world is a controller with its nodes, in which time passes.
type world struct {
	c         *control.Controller
	from, now sched.Time
	stuck     bool // nothing happens any more
	first     job.Number
	ends      ends
	runs      predict.Predictor
	jobs      map[string]waiting // that wait in the beginning
	left      int                // of these, so many have not started
	arrays    []job.Number       // that have tasks left in the beginning
}

type waiting struct {
	Job
	started sched.Time
}

func newWorld(rules control.Config) (*world, error) {
	rules = forever(rules)
	c, err := control.New(rules, 1)
	return &world{c: c, jobs: map[string]waiting{}}, err
}

// forever is rules by which nodes need not be heard of, nothing is stored and no job
// that has ended leaves the table.
func forever(rules control.Config) control.Config {
	rules.NoRecords, rules.SuspectTime, rules.NodeTimeout, rules.RebootTime = true, never, never, never
	rules.KeepEnded, rules.KeepCount = never, 1<<40
	return rules
}

// begin is the moment of the records.
func (w *world) begin(now sched.Time, silent func(string) bool) error {
	w.from, w.now = now, now
	if err := w.c.Loaded(now); err != nil {
		return err
	}
	v := w.c.View(now)
	w.first = v.Next
	for n := range v.Nodes.All() {
		if !silent(n.Name) {
			continue
		}
		if _, r, _ := control.Apply(w.c, now, control.Drain{Node: n.Name, Reason: "it does not answer"}); r != nil {
			return refused("node "+n.Name, r)
		}
	}
	var past []*state.Job
	for j := range v.All() {
		switch {
		case j.State.Final():
			past = append(past, j)
		case j.Cron != nil || j.State == job.OnHold:
		case j.Tasks != nil:
			w.arrays = append(w.arrays, j.Number)
		case j.State == job.Queued:
			w.waits(j)
		}
	}
	slices.SortStableFunc(past, func(a, b *state.Job) int { return int(a.Ended - b.Ended) })
	for _, j := range past {
		if j.Started > 0 && (j.State == job.Finished || j.State == job.Failed && j.Reason.Class() != job.Infra) {
			w.runs.Observe(picture.Waiting(j), max(j.Ended-j.Started, 1))
		}
	}
	for j := range v.All() {
		if j.State.Active() && j.Tasks == nil {
			w.runsUntil(j)
		}
	}
	return nil
}

func (w *world) waits(j *state.Job) {
	submitted := min(j.Submitted, w.from)
	w.jobs[j.ID()] = waiting{Job: Job{ID: j.ID(), User: j.Owner.User, Project: j.Owner.Project, Name: j.Name, Submitted: submitted}}
	w.left++
}

// change puts other rules into force and adds nodes, each as sim.AddNodes reads it.
func (w *world) change(rules control.Config, add []string) error {
	if _, r, _ := control.Apply(w.c, w.now, control.Reconfigure{Config: forever(rules)}); r != nil {
		return refused("the rules", r)
	}
	var nodes []sim.Node
	view := w.c.View(w.now)
	for n := range view.Nodes.All() {
		nodes = append(nodes, sim.Node{Name: n.Name, Inventory: n.Inventory.Inventory})
	}
	old := len(nodes)
	nodes, err := added(nodes, add)
	if err != nil {
		return err
	}
	for i := old; i < len(nodes); i++ {
		n := &nodes[i]
		if old > 0 && n.Inventory.Storage == nil { // of hardware that is new here; all else as elsewhere
			like := nodes[0].Inventory
			n.Inventory.Cluster, n.Inventory.Storage, n.Inventory.DiskBytes, n.Inventory.Features = like.Cluster, like.Storage, like.DiskBytes, like.Features
		}
		if _, r, _ := control.Apply(w.c, w.now, control.NodeSync{Name: n.Name, Instance: "more", Hash: "1", Inventory: &n.Inventory}); r != nil {
			return refused("node "+n.Name, r)
		}
	}
	return nil
}

// step lets the next thing happen.
func (w *world) step() {
	if w.c.Due() {
		w.c.Schedule(w.now)
		w.note()
	}
	next := w.c.NextTick(w.now)
	if len(w.ends) > 0 && (next == 0 || w.ends[0].at < next) {
		next = w.ends[0].at
	}
	if next == 0 {
		w.stuck = true
		return
	}
	w.now = max(next+grain-1, w.now+grain) / grain * grain
	for len(w.ends) > 0 && w.ends[0].at <= w.now {
		w.end(heap.Pop(&w.ends).(ending))
	}
	control.Apply(w.c, w.now, control.Tick{})
}

// note takes down what the last round started.
func (w *world) note() {
	plan, _ := w.c.Plan()
	if len(plan.Starts) == 0 {
		return
	}
	v := w.c.View(w.now)
	for _, s := range plan.Starts {
		j := v.Job(job.Number(s.Job))
		w.runsUntil(j)
		old, known := w.jobs[j.ID()]
		switch {
		case known && old.started == 0:
			w.left--
		case known || j.Number < w.first || j.Parent == 0 || j.Parent >= w.first:
			continue // it ran in the beginning, or is no job of the beginning
		default:
			w.waits(j)
			w.left--
			old = w.jobs[j.ID()]
		}
		old.started = w.now
		w.jobs[j.ID()] = old
	}
}

// runsUntil expects the end of a job: when its user's last jobs of the kind ended, and
// where nothing is known of them, or it has run for longer already, with its limit.
func (w *world) runsUntil(j *state.Job) {
	limit := j.LimitLeft()
	run := w.runs.Predict(picture.Waiting(j))
	for run > 0 && j.Attempt.Start+run <= w.now && run < limit {
		run *= 2
	}
	if run == 0 || run > limit {
		run = limit
	}
	if j.Ending != nil {
		run = 0 // it was told to end
	}
	heap.Push(&w.ends, ending{at: j.Attempt.Start + run, job: j.Number, attempt: j.Attempt.Attempt})
}

// end has the nodes of a job say that it has ended.
func (w *world) end(e ending) {
	v := w.c.View(w.now)
	j := v.Job(e.job)
	if j == nil || !j.State.Active() || j.Attempt.Attempt != e.attempt {
		return
	}
	ranks := map[string][]node.RankStatus{}
	var names []string
	for i, r := range j.Attempt.Ranks {
		if r.Phase == node.PhaseEnded {
			continue
		}
		if ranks[r.Alloc.Node] == nil {
			names = append(names, r.Alloc.Node)
		}
		ranks[r.Alloc.Node] = append(ranks[r.Alloc.Node], node.RankStatus{
			ID: j.RankID(i), UUID: j.Identity(), Phase: node.PhaseEnded,
			Exit: &node.Exit{StartedMS: int64(j.Attempt.Start), EndedMS: int64(w.now)},
		})
	}
	for _, name := range names {
		n := v.Node(name)
		control.Apply(w.c, w.now, control.NodeSync{
			Name: name, Instance: n.Instance, Boot: n.Boot, Hash: n.Hash, Unhealthy: n.Unhealthy, Ranks: ranks[name],
		})
	}
}

// done says that all jobs which can start have started.
func (w *world) done() bool {
	if w.stuck || w.now >= w.from+Horizon {
		return true
	}
	if w.left > 0 {
		return false
	}
	v := w.c.View(w.now)
	for len(w.arrays) > 0 {
		if j := v.Job(w.arrays[0]); j != nil && !j.State.Final() {
			return false
		}
		w.arrays = w.arrays[1:]
	}
	return true
}

// until is how far this world is known.
func (w *world) until() sched.Time {
	if w.done() {
		return w.from + Horizon
	}
	return w.now
}

// startOf is when a job starts, 0 if not before then: at that moment itself there may be a round to come.
func (w *world) startOf(id string, until sched.Time) sched.Time {
	if j := w.jobs[id]; j.started > 0 && j.started < until {
		return j.started
	}
	return 0
}

// ending is an end that is expected.
type ending struct {
	at      sched.Time
	job     job.Number
	attempt uint32
}

type ends []ending

func (h ends) Len() int { return len(h) }
func (h ends) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].job < h[j].job
}
func (h ends) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *ends) Push(x any)   { *h = append(*h, x.(ending)) }
func (h *ends) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
