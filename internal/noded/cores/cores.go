package cores

import (
	"fmt"
	"os"
	"sync"

	"gbatch/cgroups"
	"gbatch/internal/job"
	"gbatch/internal/noded/config"
)

// Grant is the processors of one rank and the NUMA nodes of its memory. With
// no processors named, the rank may run on all that are not reserved.
type Grant struct {
	CPUs cgroups.CPUSet
	Mems []int
}

// List is the processors' numbers for the job's environment; where none are
// bound, n of them by count.
func (g Grant) List(n int) []int {
	if ids := g.CPUs.List(); len(ids) > 0 {
		return ids
	}
	ids := make([]int, n)
	for i := range ids {
		ids[i] = i
	}
	return ids
}

// Map knows which processors belong to whom.
type Map struct {
	Topology cgroups.Topology
	reserved cgroups.CPUSet
	Offered  int  // cores that the node tells the controller of
	shared   bool // more are offered than there are: nobody gets their own

	mu    sync.Mutex
	held  map[job.RankID]cgroups.CPUSet
	heirs map[job.RankID]job.RankID // who has a rank's processors when it gives them back
}

func New(c *config.Config) (*Map, error) {
	t, err := cgroups.ReadTopology(os.DirFS("/sys"))
	if err != nil {
		return nil, err
	}
	online := t.Online().List()
	n := min(c.Reserve.Cores, len(online))
	m := &Map{Topology: t, reserved: cgroups.NewCPUSet(online[:n]...), held: map[job.RankID]cgroups.CPUSet{}, heirs: map[job.RankID]job.RankID{}}
	own := len(online) - n
	m.Offered = own
	if c.Cores > 0 {
		m.Offered = c.Cores
	}
	m.shared = m.Offered > own
	return m, nil
}

// Take chooses n processors for a rank, near the given NUMA nodes.
func (m *Map) Take(id job.RankID, n int, near []int) (Grant, error) {
	if n <= 0 || m.shared {
		return Grant{CPUs: m.sharedSet()}, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if have, ok := m.held[id]; ok {
		return Grant{CPUs: have}, nil
	}
	var busy cgroups.CPUSet
	for _, s := range m.held {
		busy = busy.Union(s)
	}
	set, mems, err := m.Topology.Pick(cgroups.PickRequest{N: n, NearNUMA: near, Busy: busy, Reserved: m.reserved})
	if err != nil {
		return Grant{}, fmt.Errorf("choose cores for %s: %w", id, err)
	}
	m.held[id] = set
	return Grant{CPUs: set, Mems: mems}, nil
}

// sharedSet is what ranks without processors of their own run on: everything
// but the reserved ones; empty, which sets no bound, if none are.
func (m *Map) sharedSet() cgroups.CPUSet {
	if m.reserved.IsEmpty() {
		return cgroups.CPUSet{}
	}
	return m.Topology.Online().Minus(m.reserved)
}

// Claim notes the processors of a rank that was found running.
func (m *Map) Claim(id job.RankID, set cgroups.CPUSet) {
	if set.IsEmpty() || m.shared {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held[id] = set
}

// GiveBack takes a rank's processors back, for its heir if it has one. Without any it does nothing.
func (m *Map) GiveBack(id job.RankID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	set, held := m.held[id]
	next, any := m.heirs[id]
	if held && any {
		m.held[next] = set
	}
	delete(m.held, id)
	delete(m.heirs, id)
	for of, heir := range m.heirs { // it may be one itself
		if heir != id {
			continue
		}
		if delete(m.heirs, of); any {
			m.heirs[of] = next
		}
	}
}

// Inherit has a rank get the n processors of another one, which has them or is to get them, when that
// gives them back. False: that one has not so many, or somebody else gets them.
func (m *Map) Inherit(id, of job.RankID, n int) (Grant, bool) {
	if n <= 0 || m.shared {
		return Grant{CPUs: m.sharedSet()}, true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, any := m.heirs[of]; any {
		return Grant{}, false
	}
	has := of
	for before, any := has, true; any; {
		if has = before; m.held[has].Len() > 0 {
			break
		}
		any = false
		for b, heir := range m.heirs { // a rank is the heir of one
			if heir == has {
				before, any = b, true
			}
		}
	}
	set := m.held[has]
	if set.Len() != n {
		return Grant{}, false
	}
	_, mems, err := m.Topology.Pick(cgroups.PickRequest{N: n, Busy: m.Topology.Online().Minus(set), Reserved: m.reserved})
	if err != nil {
		return Grant{}, false
	}
	m.heirs[of] = id
	return Grant{CPUs: set, Mems: mems}, true
}

// Grow finds n processors for a rank that has some: of its own if it has
// enough, else its own and further ones. Those that it gains are held for it,
// those that it is to lose still are.
func (m *Map) Grow(id job.RankID, n int, near []int) (Grant, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	have, ok := m.held[id]
	if m.shared || !ok {
		return Grant{CPUs: m.sharedSet()}, nil
	}
	pick := func(n int, busy cgroups.CPUSet) (Grant, error) {
		set, mems, err := m.Topology.Pick(cgroups.PickRequest{N: n, NearNUMA: near, Busy: busy, Reserved: m.reserved})
		return Grant{CPUs: set, Mems: mems}, err
	}
	others := m.Topology.Online().Minus(have)
	if n <= have.Len() {
		return pick(n, others)
	}
	var busy cgroups.CPUSet
	for _, s := range m.held {
		busy = busy.Union(s)
	}
	more, err := pick(n-have.Len(), busy)
	if err != nil {
		return Grant{}, fmt.Errorf("choose cores for %s: %w", id, err)
	}
	all := have.Union(more.CPUs)
	m.held[id] = all
	return pick(n, m.Topology.Online().Minus(all))
}

// Set notes the processors that a rank has now.
func (m *Map) Set(id job.RankID, set cgroups.CPUSet) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.held[id]; ok {
		m.held[id] = set
	}
}
