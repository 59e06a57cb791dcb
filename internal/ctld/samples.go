package ctld

import (
	"sync"

	"gbatch/internal/api"
)

// samples is what nodes last said of their GPUs' work, by node. It is kept in
// memory only: a node says it again with each sync. The zero value is empty.
type samples struct {
	mu     sync.Mutex
	byNode map[string][]api.GPUSample
}

// put takes a node's word; none takes back what it said before.
func (s *samples) put(node string, list []api.GPUSample) {
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

// fill adds to a node's GPUs what they were doing. A node that is not heard
// any more says nothing of now.
func (s *samples) fill(n *api.Node) {
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
