package launch

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Free is what of a rank no step has: cores and GPUs by their index.
type Free struct {
	CPUs, GPUs []bool
}

// AllFree is a job without steps.
func (i *Info) AllFree() (all []Free) {
	for _, n := range i.Nodes {
		f := Free{make([]bool, n.CPUs), make([]bool, n.GPUs)}
		for k := range f.CPUs {
			f.CPUs[k] = true
		}
		for k := range f.GPUs {
			f.GPUs[k] = true
		}
		all = append(all, f)
	}
	return all
}

// ErrBusy says that a step has to wait for others to end.
var ErrBusy = errors.New("Requested nodes are busy") //nolint:staticcheck // shown as Slurm writes it

// errTooMuch is a step that no wait would help. The words are srun's.
var errTooMuch = errors.New("More processors requested than permitted")

// Plan lays the tasks of a step out on what is free, and takes it. Free is
// changed only when a layout is returned.
func (i *Info) Plan(free []Free, q Request) (*Layout, error) {
	l, err := i.plan(free, q)
	if errors.Is(err, errTooMuch) {
		if _, never := i.plan(i.AllFree(), q); never == nil {
			err = ErrBusy
		}
	}
	return l, err
}

func (i *Info) plan(free []Free, q Request) (*Layout, error) {
	ranks, err := i.candidates(q)
	if err != nil {
		return nil, err
	}
	p := &plan{info: i, q: q, free: free, cpus: max(q.CPUs, 1)}
	if err := p.size(ranks); err != nil {
		return nil, err
	}
	if err := p.fill(ranks); err != nil {
		return nil, err
	}
	l := &Layout{Tasks: p.tasks, CPUs: p.cpus}
	for k, r := range p.ranks {
		l.Placed = append(l.Placed, Placed{Rank: r, Tasks: make([]Task, p.counts[k])})
	}
	p.number(l)
	return l, p.grant(l)
}

// candidates are the ranks that a step may use, those first that it must use.
func (i *Info) candidates(q Request) (ranks []int, err error) {
	var others []int
	for r, n := range i.Nodes {
		switch {
		case slices.Contains(q.Not, n.Name):
		case slices.Contains(q.On, n.Name):
			ranks = append(ranks, r)
		case r >= q.Relative:
			others = append(others, r)
		}
	}
	if len(q.On) == 0 || q.Nodes > 0 {
		ranks = append(ranks, others...)
	}
	for _, name := range slices.Concat(q.On, q.Not) {
		if !slices.Contains(i.Names(), name) {
			return nil, fmt.Errorf("node %s is not of this job, which has %s", name, strings.Join(i.Names(), ","))
		}
	}
	if len(ranks) == 0 {
		return nil, errors.New("Requested node configuration is not available")
	}
	return ranks, nil
}

type plan struct {
	info *Info
	q    Request
	free []Free

	cpus   int // of each task
	gpus   int // of each task; 0: see share
	nodes  int
	tasks  int
	ranks  []int
	counts []int // of tasks, beside ranks
}

// size decides how many tasks there are, on how many ranks, and what each has.
func (p *plan) size(ranks []int) error {
	q := p.q
	if q.GPUsPerTask != nil {
		p.gpus = *q.GPUsPerTask
	}
	p.nodes = len(ranks)
	switch {
	case q.Nodes > len(p.info.Nodes):
		return fmt.Errorf("Only allocated %d nodes asked for %d", len(p.info.Nodes), q.Nodes) //nolint:staticcheck // the words are srun's
	case q.Nodes > len(ranks):
		return errors.New("Requested node configuration is not available")
	case q.MaxNodes > 0:
		p.nodes = min(p.nodes, q.MaxNodes)
	case q.Nodes > 0:
		p.nodes = q.Nodes
	}
	p.tasks = q.Tasks
	switch {
	case p.tasks > 0:
	case q.PerNode > 0:
		p.tasks = q.PerNode * p.nodes
	case q.TasksPerGPU > 0 && q.GPUs != nil:
		p.tasks = q.TasksPerGPU * *q.GPUs
	case q.GPUsPerTask != nil && *q.GPUsPerTask > 0 && q.GPUs != nil:
		p.tasks = *q.GPUs / *q.GPUsPerTask
	default:
		p.tasks = p.nodes
	}
	if p.tasks < 1 || p.tasks > MaxTasks {
		return fmt.Errorf("%d tasks are not between 1 and %d", p.tasks, MaxTasks)
	}
	p.nodes = min(p.nodes, p.tasks)
	return nil
}

// MaxTasks bounds the tasks of a step.
const MaxTasks = 1 << 16

// room is how many tasks a rank has room for.
func (p *plan) room(rank int) int {
	f, n := p.free[rank], p.tasks
	cores := count(f.CPUs)
	if p.q.Overlap {
		cores = len(f.CPUs)
	}
	if p.q.Overcommit {
		if cores == 0 {
			return 0
		}
	} else {
		n = min(n, cores/p.cpus)
	}
	gpus := count(f.GPUs)
	if p.q.Overlap {
		gpus = len(f.GPUs)
	}
	if p.gpus > 0 {
		n = min(n, gpus/p.gpus)
	}
	if g := p.q.GPUsPerNode; g != nil && *g > gpus {
		return 0
	}
	if p.q.PerNode > 0 {
		n = min(n, p.q.PerNode)
	}
	return n
}

func count(free []bool) (n int) {
	for _, f := range free {
		if f {
			n++
		}
	}
	return n
}

// fill decides how many tasks each rank has: one on each, then one more in turn
// where there is room, so that they are shared out evenly.
func (p *plan) fill(ranks []int) error {
	room := map[int]int{}
	for k, r := range ranks {
		n := p.room(r)
		switch {
		case len(p.ranks) == p.nodes:
		case n > 0:
			p.ranks = append(p.ranks, r)
			room[r] = n
		case k < len(p.q.On) && p.q.Nodes > 0:
			return errTooMuch
		}
	}
	if len(p.ranks) < p.nodes && (p.q.Nodes > 0 || len(p.ranks) == 0) {
		return errTooMuch
	}
	slices.Sort(p.ranks)
	p.counts = make([]int, len(p.ranks))
	for left := p.tasks; left > 0; {
		before := left
		for k, r := range p.ranks {
			if left > 0 && p.counts[k] < room[r] {
				p.counts[k]++
				left--
			}
		}
		if left == before {
			return errTooMuch
		}
	}
	return nil
}

// number gives the tasks their numbers.
func (p *plan) number(l *Layout) {
	plane := 0
	switch word, size, _ := strings.Cut(p.q.Distribution, "="); word {
	case "cyclic":
		plane = 1
	case "plane":
		plane, _ = strconv.Atoi(size)
	}
	given, next := make([]int, len(l.Placed)), 0
	for next < p.tasks {
		for k := range l.Placed {
			n := len(l.Placed[k].Tasks) - given[k]
			if plane > 0 {
				n = min(n, plane)
			}
			for range n {
				l.Placed[k].Tasks[given[k]].ID, l.Placed[k].Tasks[given[k]].Local = next, given[k]
				given[k]++
				next++
			}
		}
	}
}

// grant gives each task its cores and GPUs, and takes them from what is free.
func (p *plan) grant(l *Layout) error {
	for k := range l.Placed {
		at := &l.Placed[k]
		if err := p.grantGPUs(at); err != nil {
			return err
		}
	}
	for k := range l.Placed {
		at := &l.Placed[k]
		f, q := p.free[at.Rank], p.q
		var together []int
		if q.Overcommit && !q.Overlap {
			together = take(f.CPUs, p.cpus*len(at.Tasks))
		}
		for t := range at.Tasks {
			switch {
			case q.Overlap:
				at.Tasks[t].CPUs = shared(len(f.CPUs), p.cpus, t*p.cpus)
			case q.Overcommit:
				at.Tasks[t].CPUs = together
			default:
				at.Tasks[t].CPUs = take(f.CPUs, p.cpus)
			}
			for _, g := range at.Tasks[t].GPUs {
				if !q.Overlap && q.asksGPUs() {
					f.GPUs[g] = false
				}
			}
		}
	}
	return nil
}

// take takes up to n that are free.
func take(free []bool, n int) (list []int) {
	for k := range free {
		if free[k] && len(list) < n {
			list, free[k] = append(list, k), false
		}
	}
	return list
}

// shared are n of all, from a place on, whoever has them.
func shared(all, n, from int) (list []int) {
	for k := range min(n, all) {
		list = append(list, (from+k)%all)
	}
	return list
}

// grantGPUs says which GPUs the tasks of a rank see.
func (p *plan) grantGPUs(at *Placed) error {
	f, q := p.free[at.Rank], p.q
	var have []int
	for k, is := range f.GPUs {
		if is || q.Overlap {
			have = append(have, k)
		}
	}
	asked := q.asksGPUs()
	if !asked { // all of the rank's, beside whoever else has them
		have = nil
		for k := range f.GPUs {
			have = append(have, k)
		}
	}
	n := len(have)
	switch {
	case q.GPUsPerTask != nil:
		n = *q.GPUsPerTask * len(at.Tasks)
	case q.GPUsPerNode != nil:
		n = *q.GPUsPerNode
	case q.GPUs != nil:
		n = (*q.GPUs + len(p.ranks) - 1) / len(p.ranks)
	}
	if n > len(have) {
		return errTooMuch
	}
	have = have[:n]
	for t := range at.Tasks {
		list, err := p.bindGPUs(have, t, len(at.Tasks))
		if err != nil {
			return err
		}
		at.Tasks[t].GPUs, at.Tasks[t].NoGPU = list, asked && len(list) == 0
	}
	return nil
}

// bindGPUs are those of have that task t of a rank sees.
func (p *plan) bindGPUs(have []int, t, tasks int) ([]int, error) {
	word, arg, _ := strings.Cut(p.q.GPUBind, ":")
	per := p.gpus
	switch word {
	case "none":
		return have, nil
	case "per_task":
		n, err := strconv.Atoi(arg)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("--gpu-bind=%s: want per_task:NUMBER", p.q.GPUBind)
		}
		per = n
	case "single":
		n, err := strconv.Atoi(arg)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("--gpu-bind=%s: want single:TASKS", p.q.GPUBind)
		}
		if len(have) == 0 {
			return nil, nil
		}
		return []int{have[t/n%len(have)]}, nil
	case "map_gpu":
		ids := strings.Split(arg, ",")
		n, err := strconv.Atoi(ids[t%len(ids)])
		if err != nil || n < 0 || n >= len(have) {
			return nil, fmt.Errorf("--gpu-bind=%s: a task has %d GPUs, numbered from 0", p.q.GPUBind, len(have))
		}
		return []int{have[n]}, nil
	}
	if p.q.TasksPerGPU > 0 && per == 0 && len(have) > 0 {
		return []int{have[min(t/p.q.TasksPerGPU, len(have)-1)]}, nil
	}
	if per == 0 {
		return have, nil
	}
	if (t+1)*per > len(have) {
		return nil, errTooMuch
	}
	return have[t*per : (t+1)*per], nil
}

// asksGPUs says that a step names its GPUs: others do not have them meanwhile.
func (q Request) asksGPUs() bool {
	return q.GPUs != nil || q.GPUsPerNode != nil || q.GPUsPerTask != nil
}

// Release gives back what a step has.
func Release(free []Free, l *Layout, q Request) {
	if q.Overlap {
		return
	}
	for _, at := range l.Placed {
		for _, t := range at.Tasks {
			for _, c := range t.CPUs {
				free[at.Rank].CPUs[c] = true
			}
			if q.asksGPUs() {
				for _, g := range t.GPUs {
					free[at.Rank].GPUs[g] = true
				}
			}
		}
	}
}
