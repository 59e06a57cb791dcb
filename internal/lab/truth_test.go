package lab

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gbatch/internal/job"
)

// run is what truly happened of a rank on its node.
type run struct {
	node                   string
	id                     job.RankID
	gpus, cpus             int
	assigned, begun, ended time.Time
	code                   int // -1: it did not end by itself
}

// truth is all that ran, whatever the controller believes.
type truth struct {
	s     *site
	mu    sync.Mutex
	runs  []*run
	alive map[*run]bool
	cuts  []cut
}

// cut is when a machine was switched off.
type cut struct {
	node string
	at   time.Time
}

func (u *truth) off(node string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.cuts = append(u.cuts, cut{node, time.Now()})
}

// untold says that a machine was switched off before it had one of a job's ranks, or before it could tell how that ended.
func (u *truth) untold(number job.Number, why string) bool {
	runs := u.of(number)
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.ContainsFunc(u.cuts, func(c cut) bool {
		if !strings.Contains(why, c.node) {
			return false
		}
		here := func(r *run) bool { return r.node == c.node }
		just := func(r *run) bool { d := c.at.Sub(r.ended); return here(r) && d >= 0 && d < 2*time.Second }
		return !slices.ContainsFunc(runs, here) || slices.ContainsFunc(runs, just)
	})
}

func (u *truth) assigned(m *machine, r *rank) *run {
	u.mu.Lock()
	defer u.mu.Unlock()
	x := &run{node: m.name, id: r.ID, gpus: len(r.order.Allocation.GPUs), cpus: r.order.Allocation.CPUs, assigned: time.Now()}
	for o := range u.alive {
		if o.id.Job == r.ID.Job && o.id.Rank == r.ID.Rank {
			u.s.found.wrong("job %d runs on %s and on %s", r.ID.Job, o.node, m.name)
		}
	}
	u.runs, u.alive[x] = append(u.runs, x), true
	gpus, cpus := 0, 0
	for o := range u.alive {
		if o.node == m.name {
			gpus, cpus = gpus+o.gpus, cpus+o.cpus
		}
	}
	if gpus > m.gpus || cpus > m.cores {
		u.s.found.wrong("%s has %d GPUs and %d cores, and %d and %d are in use", m.name, m.gpus, m.cores, gpus, cpus)
	}
	return x
}

func (u *truth) begun(x *run) {
	u.mu.Lock()
	defer u.mu.Unlock()
	x.begun = time.Now()
}

// over is the end of a run; a second one changes nothing.
func (u *truth) over(x *run, code int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.alive[x] {
		delete(u.alive, x)
		x.ended, x.code = time.Now(), code
	}
}

// held are the GPUs of what runs, and the nodes of each job.
func (u *truth) held() (gpus int, nodes map[job.Number][]string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	nodes = map[job.Number][]string{}
	for x := range u.alive {
		gpus += x.gpus
		nodes[x.id.Job] = append(nodes[x.id.Job], x.node)
	}
	for _, list := range nodes { // each by itself: order does not matter
		slices.Sort(list)
	}
	return gpus, nodes
}

// placed are the GPUs and nodes that jobs have: a gang has all of them until its last rank
// has ended.
func (u *truth) placed() (gpus int, nodes map[job.Number][]string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	type try struct {
		job  job.Number
		task uint32
		n    uint32
	}
	of := func(x *run) try { return try{x.id.Job, x.id.Task, x.id.Attempt} }
	alive := map[try]bool{}
	for x := range u.alive {
		alive[of(x)] = true
	}
	nodes = map[job.Number][]string{}
	for _, x := range u.runs {
		if alive[of(x)] {
			gpus += x.gpus
			nodes[x.id.Job] = append(nodes[x.id.Job], x.node)
		}
	}
	for _, list := range nodes { // each by itself: order does not matter
		slices.Sort(list)
	}
	return gpus, nodes
}

// of are a job's runs, the last ones last.
func (u *truth) of(n job.Number) (list []*run) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, x := range u.runs {
		if x.id.Job == n {
			list = append(list, x)
		}
	}
	return list
}

// findings are what was seen to be wrong, each kind with its count, and which commands were typed.
type findings struct {
	t     *testing.T
	mu    sync.Mutex
	first []string
	count int
	said  map[string]int
}

// most bounds the findings that are told.
const most = 40

func (f *findings) wrong(format string, a ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.count++; len(f.first) < most {
		line := time.Now().UTC().Format("Jan 02 15:04:05 ") + fmt.Sprintf(format, a...)
		f.first = append(f.first, line)
		f.t.Log("FOUND: ", line) // at once: a run may be ended before its end
	}
}

func (f *findings) typed(words []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.said == nil {
		f.said = map[string]int{}
	}
	name := words[0]
	if len(words) > 1 && !strings.HasPrefix(words[1], "-") && name != "gcancel" && name != "ginfo" {
		name += " " + words[1]
	}
	f.said[name]++
}

// told are the commands and how often each was typed.
func (f *findings) told() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []string
	for _, name := range slices.Sorted(maps.Keys(f.said)) {
		list = append(list, fmt.Sprintf("%s: %d", name, f.said[name]))
	}
	return strings.Join(list, ", ")
}

func (x *run) String() string {
	return fmt.Sprintf("%s on %s from %s, began %s, over %s with %d", x.id, x.node, x.assigned.UTC().Format(time.StampMilli), x.begun.UTC().Format(time.StampMilli), x.ended.UTC().Format(time.StampMilli), x.code)
}
