package replica

import (
	"time"

	"github.com/hashicorp/raft"
)

// Agreement is the part of the common log by which who leads has the members agree. An error means that this member
// may not lead any more.
type Agreement interface {
	Term() uint64                    // in which this member has led last
	Barrier() error                  // waits until this member has applied all that was agreed on before
	Apply(entry []byte) (any, error) // has the members agree on an entry, and gives what applying it to this one's Machine has given
	Confirm(term uint64) error       // asks a majority whether this member leads in that term
}

// agreement is raft's.
type agreement struct{ r *Replica }

func (a agreement) Term() uint64   { return a.r.raft.CurrentTerm() }
func (a agreement) Barrier() error { return a.r.raft.Barrier(0).Error() }

func (a agreement) Apply(entry []byte) (any, error) {
	f := a.r.raft.Apply(entry, 0)
	if err := f.Error(); err != nil {
		return nil, err
	}
	return f.Response(), nil
}

// Confirm returns when a majority has followed in this term since it was called.
func (a agreement) Confirm(term uint64) error {
	r := a.r
	asked := followed{term, r.trans.moment()}
	for {
		if err := r.raft.VerifyLeader().Error(); err != nil { // it has the others asked at once
			return err
		}
		if r.raft.CurrentTerm() != term {
			return errStale
		}
		all := r.raft.GetConfiguration()
		if err := all.Error(); err != nil {
			return err
		}
		ok, more := r.trans.majority(raft.ServerID(r.cfg.Name), all.Configuration().Servers, asked)
		if ok {
			return nil
		}
		select {
		case <-more:
		case <-time.After(r.patience() / 4): // the question got lost
		}
	}
}
