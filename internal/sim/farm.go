package sim

import (
	"fmt"

	"gbatch/sched"
)

// farm is what the simulated nodes have left. It is kept apart from the
// controller and the scheduler, and every start is checked against it.
type farm struct {
	nodes map[string]*machine
	order []*machine
	err   error // the first start that cannot be

	cores, gpus int64 // thousandths in all
	busy        held
}

type machine struct {
	name     string
	cpu, mem int64 // left
	gpu      map[string]int64
	uuids    []string
	model    string
}

// held is what runs in one moment.
type held struct {
	MilliGPU, MilliCPU int64
	Free               []Left // of each node with GPUs
}

// Left is what a node has left.
type Left struct {
	MilliCPU, MemMiB int64
	GPUs             []int64 // thousandths of each
	Model            string
}

func (f *farm) init(nodes []Node) {
	f.nodes = make(map[string]*machine, len(nodes))
	for i := range nodes {
		inv := &nodes[i].Inventory
		m := &machine{name: nodes[i].Name, cpu: int64(inv.CPUs) * 1000, mem: inv.MemBytes >> 20, gpu: map[string]int64{}}
		for _, g := range inv.GPUs {
			m.gpu[g.UUID], m.model, m.uuids = sched.WholeGPU, g.Model, append(m.uuids, g.UUID)
		}
		f.cores += m.cpu
		f.gpus += int64(len(inv.GPUs)) * sched.WholeGPU
		f.nodes[m.name] = m
		f.order = append(f.order, m)
	}
}

func (f *farm) take(ranks []sched.Allocation) { f.move(ranks, +1) }
func (f *farm) give(ranks []sched.Allocation) { f.move(ranks, -1) }

func (f *farm) move(ranks []sched.Allocation, sign int64) {
	for _, a := range ranks {
		m := f.nodes[a.Node]
		if m == nil {
			f.fail("a job is put on %s, which is no node", a.Node)
			return
		}
		m.cpu -= sign * a.MilliCPU
		m.mem -= sign * a.MemMiB
		f.busy.MilliCPU += sign * a.MilliCPU
		if m.cpu < 0 || m.mem < 0 {
			f.fail("node %s has %d milli CPU and %d MiB left after a start", m.name, m.cpu, m.mem)
		}
		for _, g := range a.GPUs {
			left, ok := m.gpu[g.UUID]
			left -= sign * g.Milli
			if !ok || left < 0 || left > sched.WholeGPU {
				f.fail("GPU %s of %s has %d/1000 left after a start", g.UUID, m.name, left)
			}
			m.gpu[g.UUID] = left
			f.busy.MilliGPU += sign * g.Milli
		}
	}
}

func (f *farm) fail(format string, args ...any) {
	if f.err == nil {
		f.err = fmt.Errorf("the plan cannot be: "+format, args...)
	}
}

// held is what runs now, and what every node has left.
func (f *farm) held() held {
	out := f.busy
	for _, m := range f.order {
		l := Left{MilliCPU: m.cpu, MemMiB: m.mem, Model: m.model}
		for _, u := range m.uuids {
			l.GPUs = append(l.GPUs, m.gpu[u])
		}
		out.Free = append(out.Free, l)
	}
	return out
}
