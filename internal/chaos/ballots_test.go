package chaos

import "fmt"

// ballot asks for a vote.
type ballot struct {
	term     uint64
	from     int
	last     int
	lastTerm uint64
	handed   bool // by who leads
}

// stand asks the others for their votes. Handed: who leads wants it.
func (e *elector) stand(handed bool) {
	e.mu.Lock()
	if e.seat(e.m.id) != counts || !e.kept.votes() {
		e.mu.Unlock()
		return
	}
	e.kept.term++
	e.kept.voted, e.role, e.leader, e.heard = e.m.id, stands, -1, e.w.now()
	last := e.kept.last()
	q := ballot{term: e.kept.term, from: e.m.id, last: last, lastTerm: e.kept.termAt(last), handed: handed}
	yes := map[int]bool{}
	e.mu.Unlock()
	if e.sync() != nil {
		return
	}
	e.mu.Lock()
	alone := e.role == stands && e.kept.term == q.term && e.majority(func(int) bool { return false })
	if alone {
		e.lead()
	}
	e.mu.Unlock()
	for i := range e.w.members {
		if i == e.m.id || alone {
			continue
		}
		e.w.wg.Go(func() {
			a, err := tell(e, i, "vote", func(o *elector) answer { return o.vote(q) })
			e.mu.Lock()
			defer e.mu.Unlock()
			if err != nil {
				return
			}
			e.later(a.term)
			if !a.yes || e.role != stands || e.kept.term != q.term {
				return
			}
			yes[i] = true
			if e.majority(func(i int) bool { return yes[i] }) {
				e.lead()
			}
		})
	}
}

// vote is given to one member in a term, that has all that this one has.
func (e *elector) vote(q ballot) answer {
	if e.m.gate(e.ctx, fmt.Sprint("vote", q.from, q.term)) != nil {
		return answer{}
	}
	e.mu.Lock()
	unheard := e.role != leads && (e.leader < 0 || e.w.now()-e.heard >= patience) || q.handed
	if q.term < e.kept.term || !unheard || !e.kept.votes() {
		defer e.mu.Unlock()
		return answer{term: e.kept.term}
	}
	e.later(q.term)
	last := e.kept.last()
	term := e.kept.termAt(last)
	has := q.lastTerm > term || q.lastTerm == term && q.last >= last || e.w.plant.anyVote
	yes := has && (e.kept.voted < 0 || e.kept.voted == q.from)
	if yes {
		e.kept.voted, e.heard = q.from, e.w.now()
	}
	a := answer{term: e.kept.term, yes: yes}
	e.mu.Unlock()
	if e.sync() != nil {
		return answer{}
	}
	return a
}
