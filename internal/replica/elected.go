package replica

import (
	"context"
	"sync"

	"github.com/hashicorp/raft"
)

// elected wakes those who wait for another leader.
type elected struct {
	mu      sync.Mutex
	changed chan struct{} // closed when it is known that another one leads, or none; nil: nobody waits
}

// next is closed at the next change.
func (e *elected) next() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.changed == nil {
		e.changed = make(chan struct{})
	}
	return e.changed
}

func (e *elected) tell() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.changed != nil {
		close(e.changed)
		e.changed = nil
	}
}

// noteElections tells those who wait in Elected of changes, until ctx is done.
func (r *Replica) noteElections(ctx context.Context) {
	seen := make(chan raft.Observation, 1)
	o := raft.NewObserver(seen, false, func(o *raft.Observation) bool { // one that is dropped came while another one waits to be told
		if vote, is := o.Data.(raft.RequestVoteRequest); is {
			r.asked(vote)
		}
		_, is := o.Data.(raft.LeaderObservation)
		return is
	})
	r.raft.RegisterObserver(o)
	defer r.raft.DeregisterObserver(o)
	for {
		r.elected.tell() // also of what came before this observed
		select {
		case <-ctx.Done():
			return
		case <-seen:
		}
	}
}

// Elected waits until another member than the one that is named is known to lead, and gives its name. Where ctx is done
// before that, it is who leads then; empty: that is not known.
func (r *Replica) Elected(ctx context.Context, not string) string {
	for {
		changed := r.elected.next()
		if name := r.Leader(); name != "" && name != not {
			return name
		}
		select {
		case <-ctx.Done():
			return r.Leader()
		case <-changed:
		}
	}
}
