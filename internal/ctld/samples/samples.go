package samples

import (
	"sync"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
)

// Samples is what nodes last said of their GPUs' work, by node. It is kept in
// memory only: a node says it again with each sync. The zero value is empty.
type Samples struct {
	mu     sync.Mutex
	byNode map[string][]api.GPUSample
	uses   map[string][]api.RankUse // by node: of ranks that run there
}

// Put takes a node's word; none takes back what it said before.
func (s *Samples) Put(node string, list []api.GPUSample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(list) == 0 {
		delete(s.byNode, node)
		return
	}
	if s.byNode == nil {
		s.byNode = map[string][]api.GPUSample{}
	}
	s.byNode[node] = list
}

// PutUse takes a node's word on the ranks that run on it.
func (s *Samples) PutUse(node string, list []api.RankUse) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.uses == nil {
		s.uses = map[string][]api.RankUse{}
	}
	if s.uses[node] = list; len(list) == 0 {
		delete(s.uses, node)
	}
}

// Use is what a rank on a node has used, as the node said last; nil: it did not.
func (s *Samples) Use(node string, id job.RankID) *node.LiveUse {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range s.uses[node] {
		if u.ID == id {
			return &u.LiveUse
		}
	}
	return nil
}

// Fill adds to a node's GPUs what they were doing. A node that is not heard
// any more says nothing of now.
func (s *Samples) Fill(n *api.Node) {
	if n.State == "lost" || n.State == "suspect" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sample := range s.byNode[n.Name] {
		for i := range n.GPUs {
			if g := &n.GPUs[i]; g.UUID == sample.UUID {
				g.Utilization, g.MemUsed = sample.Utilization, sample.MemUsed
			}
		}
	}
}
