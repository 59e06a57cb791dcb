package replica

import (
	"sync"

	"github.com/hashicorp/raft"
)

// exchanges are those with the other members. It is noted of each member what it answered last as a
// follower, and when that was asked. The library's VerifyLeader counts an answer whenever the question was sent: one
// that was on its way while this process stood still says nothing of what the others did meanwhile.
type exchanges struct {
	*raft.NetworkTransport

	mu    sync.Mutex
	count uint64 // moments that were noted
	last  map[raft.ServerID]followed
	more  chan struct{} // closed when another one is in last
}

// followed says that a member followed who led in a term at some time after a moment.
type followed struct{ term, after uint64 }

func newExchanges(t *raft.NetworkTransport) *exchanges {
	return &exchanges{NetworkTransport: t, last: map[raft.ServerID]followed{}, more: make(chan struct{})}
}

// moment is later than all those before.
func (e *exchanges) moment() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.count++
	return e.count
}

// AppendEntries tells another member that this one leads.
func (e *exchanges) AppendEntries(id raft.ServerID, at raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	began := e.moment()
	err := e.NetworkTransport.AppendEntries(id, at, args, resp)
	if err == nil && resp.Term == args.Term {
		e.note(id, followed{args.Term, began})
	}
	return err
}

func (e *exchanges) note(id raft.ServerID, f followed) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if was := e.last[id]; f.term < was.term || f.term == was.term && f.after < was.after {
		return
	}
	e.last[id] = f
	close(e.more)
	e.more = make(chan struct{})
}

// majority says whether most of those whose word counts, of which self is one, have followed in a term since a
// moment; more is closed when another one has.
func (e *exchanges) majority(self raft.ServerID, all []raft.Server, f followed) (ok bool, more <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	voters, yes := 0, 0
	for _, s := range all {
		if s.Suffrage != raft.Voter {
			continue
		}
		voters++
		if last := e.last[s.ID]; s.ID == self || last.term == f.term && last.after > f.after {
			yes++
		}
	}
	return 2*yes > voters, e.more
}
