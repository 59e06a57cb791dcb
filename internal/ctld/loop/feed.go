package loop

import (
	"slices"
	"sync"

	"gbatch/internal/control/effects"
	"gbatch/internal/job"
	"gbatch/internal/state"
)

// feedSize is how many changes the feed keeps.
const feedSize = 8192

// feed is what has changed lately, for any number of readers. The loop writes
// it and never waits for one: a reader that falls behind what is kept is told
// so, and reads everything anew. Ids grow over restarts, since the store counts
// those.
type feed struct {
	mu   sync.Mutex
	zero uint64   // the id before the first of this process
	last uint64   // the newest id
	kept []Update // by id modulo feedSize
	more chan struct{}
}

// Update is a job or a node after a step. Values are immutable.
type Update struct {
	ID    uint64
	Job   *state.Job
	Was   job.State // of the job before the step; empty: it is new
	Lines [][]byte  // state.Line: of the job's timeline
	Node  *nodeUpdate
}

type nodeUpdate struct{ Name, State, Reason string }

func newFeed(epoch uint64) *feed {
	zero := epoch << 32 // 2^21 starts stay exact in a client's floating point
	return &feed{zero: zero, last: zero, kept: make([]Update, 0, 64), more: make(chan struct{})}
}

// publish adds what a turn has changed. Its records must be durable.
func (f *feed) publish(before, after *state.View, eff *effects.Set) {
	changes := jobChanges(before, after, eff)
	changes = append(changes, nodeChanges(&before.Nodes, &after.Nodes)...)
	if len(changes) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range changes {
		f.last++
		c.ID = f.last
		if len(f.kept) < feedSize {
			f.kept = append(f.kept, c)
		} else {
			f.kept[f.slot(c.ID)] = c
		}
	}
	close(f.more)
	f.more = make(chan struct{})
}

func (f *feed) slot(id uint64) int { return int((id - f.zero - 1) % feedSize) }

// Position is the newest id.
func (f *feed) Position() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

// After gives the changes after id, the newest id, and whether that is all: if
// not, changes were missed. ring is closed when there are more.
func (f *feed) After(id uint64) (out []Update, last uint64, all bool, ring <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	oldest := f.last - uint64(len(f.kept)) // the id before the first that is kept
	if id < oldest || id > f.last {
		return nil, f.last, false, f.more
	}
	for n := id + 1; n <= f.last; n++ {
		out = append(out, f.kept[f.slot(n)])
	}
	return out, f.last, true, f.more
}

func jobChanges(before, after *state.View, eff *effects.Set) []Update {
	if len(eff.Changed) == 0 {
		return nil
	}
	lines := map[job.Number][][]byte{}
	for _, r := range eff.Records {
		if r.Kind == state.KindEvent && r.Value != nil {
			lines[r.Job] = append(lines[r.Job], r.Value)
		}
	}
	numbers := slices.Compact(slices.Sorted(slices.Values(eff.Changed)))
	out := make([]Update, 0, len(numbers))
	for _, n := range numbers {
		if j := after.Job(n); j != nil {
			u := Update{Job: j, Lines: lines[n]}
			if b := before.Job(n); b != nil {
				u.Was = b.State
			}
			out = append(out, u)
		}
	}
	return out
}

func nodeChanges(before, after *state.Nodes) (out []Update) {
	for was, is := range before.Changes(after) {
		switch {
		case is == nil:
			out = append(out, Update{Node: &nodeUpdate{Name: was.Name, State: "gone"}})
		case was == nil || *stateOf(is) != *stateOf(was) || was.Hash != is.Hash:
			out = append(out, Update{Node: stateOf(is)})
		}
	}
	return out
}

func stateOf(n *state.Node) *nodeUpdate {
	state, reason := n.State()
	return &nodeUpdate{Name: n.Name, State: state, Reason: reason}
}
