package sched

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"slices"

	"gbatch/sched/due"
	"gbatch/sched/mix"
	"gbatch/sched/nodes"
)

// State is the scheduler's picture of nodes, waiting and running jobs. Every
// method leaves it consistent or, where it returns an error, unchanged; the
// same calls in the same order give an equal State, and so does any order that
// leads to the same nodes and jobs.
type State struct {
	policy      Policy
	index       *nodes.Index
	waiting     map[JobID]*entry
	running     map[JobID]*running
	classes     map[uint64]*class // by hash of the key; never ranged over
	jobKinds    map[jobKindKey]*jobKind
	accounts    map[accountKey]*account
	extras      map[extraKey]*extra
	kindList    []*jobKind // in no order
	accountList []*account // in no order
	tallies     map[tallyKey]*tally
	due         due.Queue

	seed       maphash.Seed // of classes
	classCount int
	nextClass  uint64
	nextKind   uint64
	mix        mix.Mix
	timed      bool  // some limit counts GPU-minutes
	limitUse   int64 // see SetLimitUse
	spare      buffers
}

// running is a job that holds an allocation.
type running struct {
	*nodes.Run
	tallies [tallyKinds]*tally
}

// New makes an empty State.
func New(p Policy) (*State, error) {
	s := &State{
		index:   nodes.New(),
		waiting: map[JobID]*entry{}, running: map[JobID]*running{}, classes: map[uint64]*class{}, seed: maphash.MakeSeed(),
		accounts: map[accountKey]*account{}, extras: map[extraKey]*extra{},
		jobKinds: map[jobKindKey]*jobKind{}, tallies: map[tallyKey]*tally{},
	}
	return s, s.SetPolicy(p)
}

// Start records that a job holds an allocation, decided by a Plan, and takes it
// from the queue. It fails, and changes nothing, if the job runs already, if
// the node is not known, or if the allocation is not free.
func (s *State) Start(r Running) error { return s.hold(r, false) }

// Adopt records an allocation that is a fact, such as one that is replayed
// after a restart. Unlike Start it takes what the node, as it is now, cannot
// explain: an unknown or removed node, GPUs that it no longer reports, less CPU
// or memory than is held. Two jobs on one GPU are an error all the same.
func (s *State) Adopt(r Running) error { return s.hold(r, true) }

func (s *State) hold(r Running, fact bool) error {
	if err := r.Job.Validate(); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	if s.running[r.Job.ID] != nil {
		return fmt.Errorf("start job %d: it runs already", r.Job.ID)
	}
	if r.End == 0 {
		r.End = r.Start + cmp.Or(r.Job.Limit, s.policy.DefaultLimit)
	}
	held, err := s.index.Hold(r, fact)
	if err != nil {
		return fmt.Errorf("start job %d: %w", r.Job.ID, err)
	}
	s.Dequeue(r.Job.ID)
	run := &running{Run: held}
	s.running[r.Job.ID] = run
	s.charge(run, +1)
	return nil
}

// End records that a job holds nothing any more. It reports whether it did.
func (s *State) End(id JobID) bool {
	run := s.running[id]
	if run == nil {
		return false
	}
	s.charge(run, -1)
	delete(s.running, id)
	s.index.Release(run.Run)
	return true
}

// Resize records that a running job holds other CPU and memory; its GPUs and
// nodes stay. As with Adopt that is a fact, and the caller saw to it that there
// is room. It reports whether the job runs.
func (s *State) Resize(id JobID, ranks []Allocation) bool {
	run := s.running[id]
	if run == nil {
		return false
	}
	next := run.Running
	next.Ranks = ranks
	s.End(id)
	if err := s.Adopt(next); err != nil {
		panic(fmt.Sprintf("resize job %d: %v", id, err)) // what it held was taken, and GPUs do not change
	}
	return true
}

// Halting records that a running job was told to end, so that what it holds is
// expected back within the policy's HaltGrace. It reports whether the job runs.
func (s *State) Halting(id JobID) bool {
	run := s.running[id]
	if run == nil {
		return false
	}
	run.Halting = true
	return true
}

// Running is a copy of a job that holds an allocation.
func (s *State) Running(id JobID) (Running, bool) {
	run := s.running[id]
	if run == nil {
		return Running{}, false
	}
	out := run.Running
	out.Ranks = slices.Clone(out.Ranks)
	return out, true
}

// SetNode adds a node or replaces what is known of it. Jobs on it keep what they
// hold: GPUs that it no longer reports stay charged to them and come back with
// the node's next report that names them.
func (s *State) SetNode(n Node) error { return s.index.Set(n) }

// RemoveNode forgets a node, or as much of it as no job holds. It reports
// whether it was known.
func (s *State) RemoveNode(name string) bool { return s.index.Remove(name) }

// Roots is the storage by the roots that nodes tell, instead of what lies below
// them: of all requests with the same nodes there is one shape then. Storage that no
// node tells of stays as it is.
func (s *State) Roots(list []Storage) []Storage { return s.index.Roots(list) }

// Possible says whether the nodes as they are known, up or not but with nothing
// on them, could ever hold the shape. It costs the nodes it has to look at
// until there are enough, and is meant for every submission; WouldStart has the
// reasons.
func (s *State) Possible(in *Shape) bool { return s.index.Possible(in) }

// Reserve adds a window, or replaces the one of the same name. Nodes and GPUs
// that are only counted are chosen, those that are free soonest; it fails if too
// few match.
func (s *State) Reserve(w Window) error {
	if err := s.index.Reserve(w); err != nil {
		return err
	}
	s.rejoin()
	return nil
}

// Unreserve removes a window. It reports whether there was one.
func (s *State) Unreserve(name string) bool {
	if !s.index.Unreserve(name) {
		return false
	}
	s.rejoin()
	return true
}

// Window is a copy of a window with the nodes and GPUs that were chosen for it,
// and whether there is one of the name.
func (s *State) Window(name string) (Window, bool) {
	w := s.index.Windows[name]
	if w == nil {
		return Window{}, false
	}
	out := *w
	out.Nodes, out.Projects, out.Users = slices.Sorted(slices.Values(w.Nodes)), slices.Clone(w.Projects), slices.Clone(w.Users)
	out.GPUs, out.More = slices.Clone(w.GPUs), slices.Clone(w.More)
	return out, true
}
