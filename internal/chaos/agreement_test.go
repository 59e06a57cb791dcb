package chaos

import (
	"fmt"

	"github.com/hashicorp/raft"
)

// Term is that of a replica.Agreement, as the others.
func (e *elector) Term() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.kept.term
}

// Barrier waits for all that was agreed on before.
func (e *elector) Barrier() error {
	_, err := e.propose(func() (*raft.Log, error) { return &raft.Log{Type: raft.LogNoop}, nil })
	return err
}

// Apply has the others agree.
func (e *elector) Apply(entry []byte) (any, error) {
	e.w.audit.proposed(entry)
	return e.propose(func() (*raft.Log, error) { return e.writes(entry), nil })
}

// propose has the others agree on what is made with the lock.
func (e *elector) propose(entry func() (*raft.Log, error)) (any, error) {
	if err := e.m.gate(e.ctx, "propose"); err != nil {
		return nil, err
	}
	e.mu.Lock()
	if e.role != leads {
		e.mu.Unlock()
		return nil, errNotLeading
	}
	l, err := entry()
	if err != nil {
		e.mu.Unlock()
		return nil, err
	}
	l.Index, l.Term = uint64(e.kept.last()+1), e.kept.term
	e.kept.log = append(e.kept.log, l)
	said := make(chan any, 1)
	i := int(l.Index)
	e.waiting[i] = said
	e.w.trace("controller %d proposes entry %d of term %d, of kind %d", e.m.id, i, l.Term, l.Type)
	if l.Type == raft.LogConfiguration {
		e.w.note("controller %d wants the seats %s by entry %d", e.m.id, l.Data, i)
	}
	for _, w := range e.wake {
		signal(w)
	}
	e.mu.Unlock()
	if err := e.sync(); err != nil {
		return nil, err
	}
	if l.Type == raft.LogCommand {
		e.hear(l)
		e.w.audit.written(e, l.Data)
	}
	e.mu.Lock()
	if e.role == leads && e.kept.termAt(i) == l.Term {
		e.kept.synced = max(e.kept.synced, i)
		e.advance()
	}
	e.mu.Unlock()
	select {
	case a := <-said:
		if a == errNotLeading {
			return nil, errNotLeading
		}
		return a, nil
	case <-e.ctx.Done():
		return nil, e.ctx.Err()
	}
}

// Confirm asks the others.
func (e *elector) Confirm(term uint64) error {
	if err := e.m.gate(e.ctx, "confirm"); err != nil {
		return err
	}
	e.mu.Lock()
	q, leading := entries{term: term, from: e.m.id}, e.role == leads && e.kept.term == term
	leased := leading && e.majority(func(i int) bool { return e.w.now()-e.contact[i] < e.w.plant.readLease })
	e.mu.Unlock()
	if !leading {
		return errNotLeading
	}
	if leased {
		return nil
	}
	told := make(chan int, len(e.w.members)) // who followed; -1: did not
	for i := range e.w.members {
		if i == e.m.id {
			continue
		}
		e.w.wg.Go(func() {
			a, err := tell(e, i, "confirm", func(o *elector) answer { return o.follow(q) })
			if err == nil {
				e.mu.Lock()
				e.later(a.term)
				e.mu.Unlock()
			}
			if err != nil || !a.yes || a.term != term {
				i = -1
			}
			told <- i
		})
	}
	yes := map[int]bool{}
	for n := 0; ; n++ {
		e.mu.Lock()
		ok := e.majority(func(i int) bool { return yes[i] })
		e.mu.Unlock()
		if ok {
			return nil
		}
		if n == len(e.w.members)-1 {
			return errNotLeading
		}
		select {
		case i := <-told:
			yes[i] = true // of -1 nobody asks
		case <-e.ctx.Done():
			return e.ctx.Err()
		}
	}
}

// follow answers who asks whether it leads.
func (e *elector) follow(q entries) answer {
	if e.m.gate(e.ctx, fmt.Sprint("confirm", q.from, q.term)) != nil {
		return answer{}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return answer{yes: e.hears(q.term, q.from), term: e.kept.term}
}
