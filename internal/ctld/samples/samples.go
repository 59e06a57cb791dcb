package samples

import (
	"log/slog"
	"slices"
	"sync"
	"time"

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
	stored map[string][]api.StorageSample
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

// PutStorage takes a node's word on the room in its storage.
func (s *Samples) PutStorage(node string, list []api.StorageSample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stored == nil {
		s.stored = map[string][]api.StorageSample{}
	}
	if s.stored[node] = list; len(list) == 0 {
		delete(s.stored, node)
	}
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

// Use is what a rank of the job with this UUID has used on a node, as the node said
// last; nil: it did not.
func (s *Samples) Use(name string, id job.RankID, uuid string) *node.LiveUse {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range s.uses[name] {
		if u.ID == id && node.SameJob(u.UUID, uuid) {
			return &u.LiveUse
		}
	}
	return nil
}

// Fill adds to a node's GPUs what they were doing, and to its storage how full it is. A node that is not heard
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
				g.Utilization, g.MemUsed, g.Celsius = sample.Utilization, sample.MemUsed, sample.Celsius
			}
		}
	}
	for _, sample := range s.stored[n.Name] {
		for i := range n.Storage {
			if r := &n.Storage[i]; r.Name == sample.Name {
				r.TotalBytes, r.FreeBytes = sample.TotalBytes, sample.FreeBytes
			}
		}
	}
}

// maxSkew is how far a node's clock may be from ours before it is said. It is
// told with what a message took to arrive.
const maxSkew = 5 * time.Second

// Skews is how far the nodes' clocks are ahead of ours. All times of jobs are
// by our clock: what a node says of when is moved by this.
type Skews struct {
	log *slog.Logger

	mu     sync.Mutex
	byNode map[string]skew
}

// skew is by how much a node's clock is ahead, and since when each word of it was of a clock that is behind.
type skew struct {
	ahead  time.Duration
	behind time.Time // zero: the last word was not, or of one that is behind by more than a word can be under way
}

// behindFor is how long that has to be said before it is believed: a word that was under way for long, as to a controller that
// was just starting, looks the same, and those that waited together come together.
const behindFor = 2 * time.Second

// underWay is longer than a word can be: its node has given it up by then.
const underWay = 2 * time.Minute

// NewSkews knows no node's clock.
func NewSkews(log *slog.Logger) *Skews { return &Skews{log: log, byNode: map[string]skew{}} }

// Heard takes a node's word for the time, in milliseconds, and returns by how much its clock is ahead; 0: it said none.
func (s *Skews) Heard(node string, nodeMS int64, now time.Time) time.Duration {
	if nodeMS == 0 {
		return 0
	}
	skew := time.UnixMilli(nodeMS).Sub(now)
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.byNode[node]
	was := k.ahead
	switch {
	case skew >= -maxSkew || skew < -underWay:
		k.behind = time.Time{}
	case k.behind.IsZero():
		k.behind = now
	}
	if !k.behind.IsZero() && now.Sub(k.behind) < behindFor {
		skew = 0
	}
	switch far := skew.Abs() > maxSkew; {
	case far && was.Abs() <= maxSkew:
		s.log.Warn("a node's clock is wrong, or this machine's: run NTP on both; times of jobs are by this machine's", "node", node, "ahead", skew.Round(time.Second))
	case !far && was.Abs() > maxSkew:
		s.log.Info("a node's clock is right again", "node", node)
	}
	k.ahead = skew
	s.byNode[node] = k
	return skew
}

// Fill says it where nodes are shown.
func (s *Skews) Fill(n *api.Node) {
	s.mu.Lock()
	skew := s.byNode[n.Name].ahead
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
			if e.FreeMS > 0 {
				e.FreeMS -= by
			}
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
