package control

import (
	"fmt"

	"gbatch/internal/control/fit"
	"gbatch/internal/control/ranks"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
)

// double is why the word of a machine is not believed that has the key and the state
// directory of a node and is another one, as a copy of its disk has. The node itself is served
// as before; when it is heard again its past says that there are two.
func (e NodeSync) double(s *step) string {
	n := s.nodes.get(e.Name)
	if n == nil || n.OrdersReboot() > 0 { // nothing runs there, and another boot is what was asked for
		return ""
	}
	forgets, alone := false, false
	for num := range e.unlisted(s) { // a job that runs alone goes on also when the node is lost
		forgets, alone = forgets || !n.Lost, alone || s.jobs.get(num).Attempt.Alone && e.Instance == n.Instance
	}
	why := s.cfg.patience().OtherMachine(s.now, n, e.Boot, forgets || alone)
	if why == "" {
		return ""
	}
	if alone {
		why = fit.RunsOn(s.now, n)
	}
	v := *n
	v.Double = "with boot id " + e.Boot
	if e.From != "" {
		v.Double += ", at " + e.From
	}
	s.nodes.set(v)
	return fit.NotTheNode(e.Name, why)
}

// unlisted are the ranks that began on the node and that it does not list, by job.
func (e NodeSync) unlisted(s *step) map[job.Number]bool {
	return ranks.Unlisted(s.nodes.get(e.Name), &s.jobs.table, e.Ranks, func(r state.Rank) bool { return r.Phase.Begun() })
}

// forgotten ends the ranks that had begun on a node which does not know them, though it
// has acted on a desired set with them: what became of them nobody can tell, as when
// their directories were damaged.
func (e NodeSync) forgotten(s *step) {
	if e.Seen != s.nodes.get(e.Name).Version {
		return
	}
	lost := e.unlisted(s)
	if len(lost) == 0 {
		return
	}
	s.attempts.lose(e.Name, fmt.Sprintf("node %s does not know it any more; how its program ended is not known", e.Name), func(j *state.Job, r state.Rank) bool {
		return lost[j.Number] && r.Phase == node.PhaseRunning
	})
}

// older ends the ranks that a node does not list which came back with an older state of its disk, as of an image: see fit.Older.
func (e NodeSync) older(s *step) {
	n := s.nodes.get(e.Name)
	of := func(r state.Rank) bool { return fit.Older(n, r, e.Knows) }
	lost := ranks.Unlisted(n, &s.jobs.table, e.Ranks, of)
	s.attempts.lose(e.Name, fit.OlderText(n), func(j *state.Job, r state.Rank) bool { return lost[j.Number] && of(r) })
}

// knew records by which answer the node's disk is known with the ranks that have not begun there: see fit.Patience.Fresh.
func (e NodeSync) knew(s *step) {
	p := s.cfg.patience()
	waits := func(r state.Rank) bool {
		return r.Alloc.Node == e.Name && p.Fresh(s.now, e.Knows) && !p.Fresh(s.now, r.Knew)
	}
	for _, num := range s.nodes.get(e.Name).Jobs {
		j := s.jobs.get(num)
		if at := ranks.Knew(j.Attempt, e.Knows, waits); at != j.Attempt {
			s.jobs.change(j, "", func(j *state.Job) { j.Attempt = at })
		}
	}
}
