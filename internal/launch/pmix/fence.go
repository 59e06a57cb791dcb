package pmix

import (
	"fmt"
	"slices"

	"gbatch/internal/launch"
	"gbatch/internal/launch/pmix/wire"
)

// fence is where tasks wait for each other: those that it names, all of which name
// the same.
type fence struct {
	tasks   []int // in order
	all     bool  // of the step
	here    []int // of these on this rank
	arrived map[int]bool
	collect bool // what they have put goes to the others
	waiting []waiting
	again   []func() // requests of those that wait already: for the next time
	told    bool     // srun knows that all here have arrived
}

// waiting is a request that is answered when all have arrived.
type waiting struct {
	p   *peer
	tag uint32
}

func (w waiting) answer(went wire.Status) {
	w.p.open--
	w.p.status(w.tag, went)
}

// maxFences bounds at how many fences tasks of a rank wait.
const maxFences = 1024

// fence has a task wait for others.
func (s *Server) fence(p *peer, tag uint32, r *wire.Reader) {
	q := r.Fence()
	if r.Err() != nil {
		p.status(tag, why(r.Err()))
		return
	}
	tasks, ok := s.tasks(q.Procs)
	if !ok || !slices.Contains(tasks, p.task) {
		p.status(tag, wire.BadParameter)
		return
	}
	collect := false
	for _, i := range q.Infos {
		collect = collect || i.Key == "pmix.collect" && i.True()
	}
	p.open++
	s.arrive(waiting{p, tag}, tasks, collect)
}

// arrive has one that waits join the others.
func (s *Server) arrive(w waiting, tasks []int, collect bool) {
	f := s.fenceOf(tasks)
	if f == nil {
		w.answer(wire.TooMuch)
		return
	}
	if slices.ContainsFunc(f.waiting, func(o waiting) bool { return o.p == w.p }) {
		f.again = append(f.again, func() { s.arrive(w, tasks, collect) })
		return
	}
	f.collect = f.collect || collect
	f.waiting = append(f.waiting, w)
	f.arrived[w.p.task] = true
	switch {
	case f.told:
	case len(f.arrived) < len(f.here):
		s.stuck(f)
	case len(f.here) == len(f.tasks):
		s.release(f)
	default:
		f.told = true
		for _, m := range (launch.PMIxFence{Tasks: f.named(), Data: s.puts(f)}).Parts() {
			s.send(w.p.task, m)
		}
	}
}

// fenceOf is the fence of some tasks; nil: there are too many.
func (s *Server) fenceOf(tasks []int) *fence {
	key := fmt.Sprint(tasks)
	if f := s.fences[key]; f != nil || len(s.fences) >= maxFences {
		return f
	}
	f := &fence{tasks: tasks, all: len(tasks) == s.c.Layout.Tasks, arrived: map[int]bool{}}
	for _, id := range tasks {
		if s.own[id] {
			f.here = append(f.here, id)
		}
	}
	s.fences[key] = f
	return f
}

// named are the tasks of a fence, as srun is told.
func (f *fence) named() []int {
	if f.all {
		return nil
	}
	return f.tasks
}

// puts is what tasks here have put for others, if the fence brings that.
func (s *Server) puts(f *fence) map[int][]byte {
	if !f.collect {
		return nil
	}
	m := map[int][]byte{}
	for _, id := range f.here {
		if d := s.data[id]; d != nil {
			m[id] = encode(d.other)
		}
	}
	return m
}

// passed takes in that all tasks of a fence have arrived, with what they have put.
func (s *Server) passed(m launch.PMIxFence) {
	for id, b := range m.Data {
		s.elsewhere(id, b)
	}
	if m.More {
		return
	}
	tasks := m.Tasks
	if len(tasks) == 0 {
		tasks, _ = s.tasks([]wire.Proc{{Space: s.c.Space, Rank: wire.AllRanks}})
	}
	if f := s.fences[fmt.Sprint(tasks)]; f != nil && f.told {
		s.release(f)
	}
}

func (s *Server) release(f *fence) {
	delete(s.fences, fmt.Sprint(f.tasks))
	for _, w := range f.waiting {
		w.answer(wire.OK)
	}
	for _, next := range f.again {
		next()
	}
}

// stuck ends the step if a task has ended that others wait for.
func (s *Server) stuck(f *fence) {
	if f.told {
		return
	}
	for _, id := range f.here {
		if s.ended[id] && !f.arrived[id] {
			s.lost(id)
			return
		}
	}
}
