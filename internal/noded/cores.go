package noded

import (
	"fmt"
	"os"
	"sync"

	"gbatch/cgroups"
	"gbatch/internal/job"
	"gbatch/internal/noded/config"
)

// grant is the processors of one rank and the NUMA nodes of its memory. With
// no processors named, the rank may run on all that are not reserved.
type grant struct {
	CPUs cgroups.CPUSet
	Mems []int
}

// list is the processors' numbers for the job's environment; where none are
// bound, n of them by count.
func (g grant) list(n int) []int {
	if ids := g.CPUs.List(); len(ids) > 0 {
		return ids
	}
	ids := make([]int, n)
	for i := range ids {
		ids[i] = i
	}
	return ids
}

// coreMap knows which processors belong to whom.
type coreMap struct {
	topology cgroups.Topology
	reserved cgroups.CPUSet
	offered  int  // cores that the node tells the controller of
	shared   bool // more are offered than there are: nobody gets their own

	mu   sync.Mutex
	held map[job.RankID]cgroups.CPUSet
}

func newCoreMap(c *config.Config) (*coreMap, error) {
	t, err := cgroups.ReadTopology(os.DirFS("/sys"))
	if err != nil {
		return nil, err
	}
	online := t.Online().List()
	n := min(c.Reserve.Cores, len(online))
	m := &coreMap{topology: t, reserved: cgroups.NewCPUSet(online[:n]...), held: map[job.RankID]cgroups.CPUSet{}}
	own := len(online) - n
	m.offered = own
	if c.Cores > 0 {
		m.offered = c.Cores
	}
	m.shared = m.offered > own
	return m, nil
}

// take chooses n processors for a rank, near the given NUMA nodes.
func (m *coreMap) take(id job.RankID, n int, near []int) (grant, error) {
	if n <= 0 || m.shared {
		return grant{CPUs: m.sharedSet()}, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if have, ok := m.held[id]; ok {
		return grant{CPUs: have}, nil
	}
	var busy cgroups.CPUSet
	for _, s := range m.held {
		busy = busy.Union(s)
	}
	set, mems, err := m.topology.Pick(cgroups.PickRequest{N: n, NearNUMA: near, Busy: busy, Reserved: m.reserved})
	if err != nil {
		return grant{}, fmt.Errorf("choose cores for %s: %w", id, err)
	}
	m.held[id] = set
	return grant{CPUs: set, Mems: mems}, nil
}

// sharedSet is what ranks without processors of their own run on: everything
// but the reserved ones; empty, which sets no bound, if none are.
func (m *coreMap) sharedSet() cgroups.CPUSet {
	if m.reserved.IsEmpty() {
		return cgroups.CPUSet{}
	}
	return m.topology.Online().Minus(m.reserved)
}

// claim notes the processors of a rank that was found running.
func (m *coreMap) claim(id job.RankID, set cgroups.CPUSet) {
	if set.IsEmpty() || m.shared {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held[id] = set
}

// give takes a rank's processors back. Without any it does nothing.
func (m *coreMap) give(id job.RankID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.held, id)
}
