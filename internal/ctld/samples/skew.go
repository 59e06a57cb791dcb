package samples

import (
	"log/slog"
	"slices"
	"sync"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/node"
)

// maxSkew is how far a node's clock may be from ours before it is said. It is
// told with what a message took to arrive.
const maxSkew = 5 * time.Second

// Skews is how far the nodes' clocks are ahead of ours. All times of jobs are
// by our clock: what a node says of when is moved by this.
type Skews struct {
	log *slog.Logger

	mu     sync.Mutex
	byNode map[string]time.Duration
}

// NewSkews knows no node's clock.
func NewSkews(log *slog.Logger) *Skews { return &Skews{log: log, byNode: map[string]time.Duration{}} }

// Heard takes a node's word for the time, in milliseconds; 0: it said none.
func (s *Skews) Heard(node string, nodeMS int64, now time.Time) time.Duration {
	if nodeMS == 0 {
		return 0
	}
	skew := time.UnixMilli(nodeMS).Sub(now)
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.byNode[node]
	switch far := skew.Abs() > maxSkew; {
	case far && was.Abs() <= maxSkew:
		s.log.Warn("a node's clock is wrong, or this machine's: run NTP on both; times of jobs are by this machine's", "node", node, "ahead", skew.Round(time.Second))
	case !far && was.Abs() > maxSkew:
		s.log.Info("a node's clock is right again", "node", node)
	}
	s.byNode[node] = skew
	return skew
}

// Fill says it where nodes are shown.
func (s *Skews) Fill(n *api.Node) {
	s.mu.Lock()
	skew := s.byNode[n.Name]
	s.mu.Unlock()
	if skew.Abs() <= maxSkew {
		return
	}
	n.SkewMS = skew.Milliseconds()
}

// OnOurClock moves a node's times to our clock. Small differences are left: they
// are what the message took.
func OnOurClock(ranks []node.RankStatus, skew time.Duration) []node.RankStatus {
	if skew.Abs() <= maxSkew {
		return ranks
	}
	by := skew.Milliseconds()
	ranks = slices.Clone(ranks)
	for i := range ranks {
		if r := &ranks[i]; r.Exit != nil {
			e := *r.Exit
			e.EndedMS -= by
			if e.StartedMS > 0 {
				e.StartedMS -= by
			}
			r.Exit = &e
		}
		if ranks[i].StartedMS > 0 {
			ranks[i].StartedMS -= by
		}
	}
	return ranks
}
