package counts

import (
	"strconv"
	"sync"
	"time"

	"gbatch/internal/ctld/meter"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Counts is what a view comes to in numbers. It is made off the loop, by
// whoever scrapes, and never changes.
type Counts struct {
	view *state.View

	states    map[job.State]int
	queued    map[queue]int
	projects  holders
	users     holders
	clusters  holders
	tasks     map[state.TaskState]int // of arrays that are not over
	nodes     map[string]int          // by state
	away      []*state.Node
	gpus      map[gpuUse]float64
	all       totals
	licenses  state.LicenseUse
	resources [2]capacity // of nodes in service: what is taken, what there is
}

// ownerKey is what jobs are counted by at first.
type ownerKey struct {
	owner   *state.Owner
	cluster int
}

// queue is what is alike of jobs that wait.
type queue struct {
	reason  sched.Code
	cluster int
	qos     string
}

// holders are projects, users or clusters by name, and what each has.
type holders map[string]*totals

// totals is what a project or user has in the queue and on the nodes.
type totals struct {
	jobs      [activities]int
	nodes     int
	milliGPU  int64
	milliCPU  int64
	memMiB    int64
	endings   [meter.Endings]int
	finalJobs int
}

// activity is what a job is to who counts it.
type activity int

const (
	isHeld activity = iota
	isQueued
	isStarting
	isRunning
	isPaused
	isEnding
	activities
)

// activityNames are the labels.
var activityNames = [activities]string{"held", "queued", "starting", "running", "paused", "ending"}

func activityOf(j *state.Job) (activity, bool) {
	if j.State.Active() && j.Completing() {
		return isEnding, true
	}
	switch j.State {
	case job.OnHold:
		return isHeld, true
	case job.Queued:
		return isQueued, true
	case job.Assigned, job.Starting:
		return isStarting, true
	case job.Running:
		if j.Attempt != nil && j.Attempt.Paused != "" {
			return isPaused, true
		}
		return isRunning, true
	case job.MustHalt, job.Halting:
		return isEnding, true
	}
	return 0, false
}

// gpuUse is what is alike of GPUs.
type gpuUse struct{ model, use string }

type capacity struct{ milliCPU, memMiB int64 }

// censusEvery bounds how often the jobs are counted, however many scrape.
const censusEvery = time.Second

// lastCounts keeps the last census.
type lastCounts struct {
	mu   sync.Mutex
	last *Counts
	at   time.Time
}

// now is the census of a view, or one that is at most censusEvery older.
func (c *lastCounts) now(v *state.View) *Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.last == nil || c.last.view != v && now.Sub(c.at) >= censusEvery {
		c.last, c.at = Of(v), now
	}
	return c.last
}

// Of counts everything. Jobs of one owner share its value, so they are
// counted by that first: a map of few pointers is quick.
func Of(v *state.View) *Counts {
	c := &Counts{view: v, states: map[job.State]int{}, queued: map[queue]int{}, projects: holders{}, users: holders{},
		clusters: holders{}, tasks: map[state.TaskState]int{}, nodes: map[string]int{}, gpus: map[gpuUse]float64{}}
	byOwner := map[ownerKey]*ownerCount{}
	var last ownerKey
	var of *ownerCount
	for j := range v.All() {
		if j.Tasks != nil { // those of its tasks that may start are jobs too
			c.addArray(j)
			continue
		}
		c.licenses.Add(j)
		if w := (ownerKey{j.Owner, meter.ClusterOf(v, j)}); w != last {
			last = w
			if of = byOwner[w]; of == nil {
				of = &ownerCount{queued: map[queue]*int{}, states: map[job.State]*int{}}
				byOwner[w] = of
			}
		}
		of.add(v, j)
	}
	for w, n := range byOwner {
		c.addOwner(w, n)
	}
	for n := range v.Nodes.All() {
		c.addNode(v, n)
	}
	return c
}

// addOwner adds up what one owner has in one cluster.
func (c *Counts) addOwner(w ownerKey, n *ownerCount) {
	for state, n := range n.states {
		c.states[state] += *n
	}
	for q, n := range n.queued {
		c.queued[q] += *n
	}
	for _, h := range []*totals{&c.all, at(c.projects, w.owner.Project), at(c.users, w.owner.User), at(c.clusters, strconv.Itoa(w.cluster))} {
		h.add(&n.totals)
	}
}

// addArray counts the tasks of an array that is not over.
func (c *Counts) addArray(j *state.Job) {
	if j.State.Final() {
		return
	}
	for state, n := range j.Tasks.Counts {
		c.tasks[state] += n
	}
}

func at(m holders, name string) *totals {
	if m[name] == nil {
		m[name] = &totals{}
	}
	return m[name]
}

// ownerCount is what one owner's jobs come to. It remembers where the last job
// was counted: the next is mostly alike.
type ownerCount struct {
	totals
	states map[job.State]*int
	queued map[queue]*int

	state  job.State
	stateN *int
	q      queue
	qN     *int
}

func (o *ownerCount) add(v *state.View, j *state.Job) {
	if o.stateN == nil || o.state != j.State {
		o.state, o.stateN = j.State, slot(o.states, j.State)
	}
	*o.stateN++
	s, live := activityOf(j)
	if !live {
		o.finalJobs++
		o.endings[meter.EndingOf(j)]++
		return
	}
	o.jobs[s]++
	if s == isQueued {
		q := queue{v.WaitingCode(j), j.Request.Shape.Cluster, j.Owner.QOS}
		if o.qN == nil || o.q != q {
			o.q, o.qN = q, slot(o.queued, q)
		}
		*o.qN++
	}
	if !j.Holds() {
		return
	}
	for _, r := range j.Attempt.Ranks {
		if r.Phase != node.PhaseEnded {
			o.nodes++
			o.milliGPU += r.Alloc.MilliGPU()
			o.milliCPU += r.Alloc.MilliCPU
			o.memMiB += r.Alloc.MemMiB
		}
	}
}

func slot[K comparable](m map[K]*int, k K) *int {
	if m[k] == nil {
		m[k] = new(int)
	}
	return m[k]
}

func (h *totals) add(o *totals) {
	for i, n := range o.jobs {
		h.jobs[i] += n
	}
	for i, n := range o.endings {
		h.endings[i] += n
	}
	h.finalJobs += o.finalJobs
	h.nodes += o.nodes
	h.milliGPU, h.milliCPU, h.memMiB = h.milliGPU+o.milliGPU, h.milliCPU+o.milliCPU, h.memMiB+o.memMiB
}

// weight says who keeps a label of their own: who holds most, then who waits.
func (h *totals) weight() float64 {
	live := 0
	for _, n := range h.jobs {
		live += n
	}
	return float64(h.milliGPU)*1e6 + float64(h.milliCPU)*1e3 + float64(live)
}

// addNode counts a node and its GPUs: each is allocated, or idle, or nobody can
// have it now.
func (c *Counts) addNode(v *state.View, n *state.Node) {
	state, _ := n.State()
	c.nodes[state]++
	if state != "up" {
		c.away = append(c.away, n)
	}
	used := map[string]int64{}
	for _, num := range n.Jobs {
		for _, r := range v.Job(num).Attempt.Ranks {
			if r.Alloc.Node != n.Name {
				continue
			}
			c.resources[0].milliCPU += r.Alloc.MilliCPU
			c.resources[0].memMiB += r.Alloc.MemMiB
			for _, g := range r.Alloc.GPUs {
				used[g.UUID] += g.Milli
			}
		}
	}
	c.resources[1].milliCPU += int64(n.Inventory.CPUs) * 1000
	c.resources[1].memMiB += n.Inventory.MemBytes >> 20
	for _, g := range n.Inventory.GPUs {
		rest := "idle"
		if state != "up" || n.OutOfService(g) != "" {
			rest = "out_of_service"
		}
		taken := float64(used[g.UUID]) / 1000
		c.gpus[gpuUse{g.Model, "allocated"}] += taken
		c.gpus[gpuUse{g.Model, rest}] += 1 - taken
	}
}
