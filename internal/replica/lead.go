package replica

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"gbatch/internal/store"
)

// ErrLost says that this member does not lead any more. Whether what it proposed last was
// agreed on is not known.
var ErrLost = errors.New("this controller does not lead any more: whether this was stored is not known")

// Leads tells when this member begins to lead and when it ends.
func (r *Replica) Leads() <-chan bool { return r.raft.LeaderCh() }

// Failed gives the error by which this member cannot go on: the process must end.
func (r *Replica) Failed() <-chan error { return r.fsm.Failed() }

// Agreed is the last entry of the common log that a majority is known to have.
func (r *Replica) Agreed() uint64 { return r.raft.CommitIndex() }

// Applied is the place in the common log up to which this member has all records.
func (r *Replica) Applied() uint64 { return r.raft.AppliedIndex() }

// Leading says whether this member leads now.
func (r *Replica) Leading() bool { return r.raft.State() == raft.Leader }

// Lead is one member's time of leading. Who leads again later begins anew: another member may
// have led between.
type Lead struct {
	log   Agreement
	nowMS func() int64
	term  uint64
	reads reads

	through atomic.Uint64 // see Through

	Store *store.Store // with all that was agreed on before; it commits what members agree on
	From  int64        // where the clock of who led before has come to, Unix milliseconds; 0: that is not known
}

// Ready waits until this member has all that was agreed on before it began to lead.
func (r *Replica) Ready() (*Lead, error) { return NewLead(agreement{r}, r.fsm, r.cfg.NowMS) }

// NewLead is Ready for a common log and what it is applied to. Now is the clock of who leads.
func NewLead(log Agreement, m *Machine, nowMS func() int64) (*Lead, error) {
	l := &Lead{log: log, nowMS: nowMS, term: log.Term()}
	l.reads.ask = l.Confirm
	if err := log.Barrier(); err != nil {
		return nil, lost(err)
	}
	if err := m.whole(); err != nil {
		return nil, err // others would apply what it decides without that entry
	}
	if l.Store = m.current(); l.Store == nil {
		return nil, errors.New("this controller has no store yet")
	}
	l.From = m.clock.notBefore()
	return l, nil
}

// Begin counts a start of the controller.
func (l *Lead) Begin() error { return l.Store.Lead(l.propose) }

// End has the store commit nothing any more.
func (l *Lead) End() { l.Store.Follow() }

// propose has members agree on a batch.
func (l *Lead) propose(batch []byte) error {
	response, err := l.log.Apply(newEntry(l.term, l.nowMS(), batch))
	if err != nil {
		return lost(err)
	}
	if place, is := response.(stored); is {
		l.through.Store(uint64(place))
		return nil
	}
	err, _ = response.(error)
	if errors.Is(err, errStale) {
		return lost(err)
	}
	return err
}

// Through is the place in the common log of the last batch that this lead has stored and knows it. Of what came behind
// it, it has decided nothing that it knows to be stored: that is another one's, or its own and not answered.
func (l *Lead) Through() uint64 { return l.through.Load() }

// Confirm asks a majority whether this member leads as it did. What it answers next is
// not behind what another one has decided.
func (l *Lead) Confirm() error {
	if err := l.log.Confirm(l.term); err != nil {
		return lost(err)
	}
	return nil
}

// Fresh is Confirm for who reads only: those who come while a question is out share the next one.
func (l *Lead) Fresh(ctx context.Context) error { return l.reads.fresh(ctx) }

func lost(err error) error { return fmt.Errorf("%w (%w)", ErrLost, err) }

// Member is one of the controllers.
type Member struct {
	Name    string
	Address string // for the other members
	Voter   bool   // its word counts
	Leads   bool
}

// Members are those that this one knows of.
func (r *Replica) Members() ([]Member, error) {
	f := r.raft.GetConfiguration()
	if err := f.Error(); err != nil {
		return nil, err
	}
	_, leader := r.raft.LeaderWithID()
	var out []Member
	for _, s := range f.Configuration().Servers {
		out = append(out, Member{Name: string(s.ID), Address: string(s.Address), Voter: s.Suffrage == raft.Voter, Leads: s.ID == leader})
	}
	return out, nil
}

// Settle waits until a majority has all changes of the members that this one knew of before: it knows of one as soon as it has
// asked for it, and that may come to nothing. Who leads is asked.
func (r *Replica) Settle() error { return r.raft.Barrier(changeWait).Error() }

// Leader is the name of who leads, empty if that is not known.
func (r *Replica) Leader() string {
	_, id := r.raft.LeaderWithID()
	return string(id)
}

// changeWait is how long a change of the members may take.
const changeWait = 10 * time.Second

// Add has another member take part. Who leads is asked.
func (r *Replica) Add(m Member) error {
	id, address := raft.ServerID(m.Name), raft.ServerAddress(m.Address)
	if m.Voter {
		return r.raft.AddVoter(id, address, 0, changeWait).Error()
	}
	return r.raft.AddNonvoter(id, address, 0, changeWait).Error()
}

// Remove has a member take part no longer. Who leads is asked.
func (r *Replica) Remove(name string) error {
	return r.raft.RemoveServer(raft.ServerID(name), 0, changeWait).Error()
}

// HandOver has the one lead that is the least behind, where there is another one whose word counts and that can be reached: who
// does not answer would be waited for.
func (r *Replica) HandOver() error {
	members, err := r.Members()
	others := slices.DeleteFunc(members, func(m Member) bool { return !m.Voter || m.Name == r.cfg.Name })
	if err != nil || !r.anyRuns(others) {
		return err
	}
	return r.Transfer("")
}

// Transfer has another member lead: the one named, or the one that is the least behind.
func (r *Replica) Transfer(to string) error {
	if to == "" {
		return r.raft.LeadershipTransfer().Error()
	}
	members, err := r.Members()
	if err != nil {
		return err
	}
	for _, m := range members {
		if m.Name == to {
			return r.raft.LeadershipTransferToServer(raft.ServerID(m.Name), raft.ServerAddress(m.Address)).Error()
		}
	}
	return fmt.Errorf("no controller has the name %q", to)
}
