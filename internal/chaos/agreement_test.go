package chaos

import "github.com/hashicorp/raft"

// Term is that of a replica.Agreement, as the others.
func (e *elector) Term() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.kept.term
}

// Barrier waits for all that was agreed on before.
func (e *elector) Barrier() error {
	_, err := e.propose(&raft.Log{Type: raft.LogNoop})
	return err
}

// Apply has the others agree.
func (e *elector) Apply(entry []byte) (any, error) {
	return e.propose(&raft.Log{Type: raft.LogCommand, Data: entry})
}

func (e *elector) propose(l *raft.Log) (any, error) {
	if err := e.m.gate(e.ctx, "propose"); err != nil {
		return nil, err
	}
	e.mu.Lock()
	if e.role != leads {
		e.mu.Unlock()
		return nil, errNotLeading
	}
	l.Index, l.Term = uint64(len(e.kept.log)+1), e.kept.term
	e.kept.log = append(e.kept.log, l)
	said := make(chan any, 1)
	i := int(l.Index)
	e.waiting[i] = said
	for _, w := range e.wake {
		signal(w)
	}
	e.mu.Unlock()
	if err := e.sync(); err != nil {
		return nil, err
	}
	e.mu.Lock()
	if e.role == leads && e.termAt(i) == l.Term {
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
	e.mu.Unlock()
	if !leading {
		return errNotLeading
	}
	told := make(chan bool, e.w.controllers)
	for i := range e.w.controllers {
		if i == e.m.id {
			continue
		}
		e.w.wg.Go(func() {
			a, err := tell(e, i, "confirm", func(o *elector) answer { return o.append(q) })
			if err == nil {
				e.mu.Lock()
				e.later(a.term)
				e.mu.Unlock()
			}
			told <- err == nil && a.yes && a.term == term
		})
	}
	yes := 1
	for range e.w.controllers - 1 {
		select {
		case ok := <-told:
			if ok {
				yes++
			}
		case <-e.ctx.Done():
			return e.ctx.Err()
		}
		if 2*yes > e.w.controllers {
			return nil
		}
	}
	return errNotLeading
}
