package ctld

import (
	"context"
	"time"

	"gbatch/internal/client"
	"gbatch/internal/ctld/controllers"
)

// askOthers is how often the others are asked while this controller hears of none that leads.
const askOthers = time.Second

// hearRemoved has the others asked, while none is known to lead, whether this controller was removed, until ctx is done. It may never
// get the entry that says so: who leads sends that once, and nothing more to one that was removed.
func (m *Member) hearRemoved(ctx context.Context) {
	defer m.removed.Store(false) // one that leads takes part
	for client.Sleep(ctx, askOthers) == nil {
		removed := m.replica.Leader() == "" && m.othersRemoved(ctx)
		if m.removed.Swap(removed) != removed && removed {
			m.log.Warn("by what another controller says, this one does not take part: if it was removed, stop it, or empty its directory and add it again")
		}
	}
}

// othersRemoved says whether one that this controller has for one of the others knows more of the common log, and does not have this one among
// the members.
func (m *Member) othersRemoved(ctx context.Context) bool {
	all, err := m.replica.Members()
	if err != nil {
		return false // asked again
	}
	own := m.replica.Applied()
	for _, other := range all {
		if other.Name == m.cfg.Replica.Name {
			continue
		}
		s, err := controllers.Ask(ctx, other.Address, m.pki.AskTLS())
		if err == nil && s.Applied > own && outside(m.cfg.Replica.Name, s.Members) {
			return true
		}
	}
	return false
}
