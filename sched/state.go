package sched

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
)

// State is the scheduler's picture of nodes, waiting and running jobs. Every
// method leaves it consistent or, where it returns an error, unchanged; the
// same calls in the same order give an equal State, and so does any order that
// leads to the same nodes and jobs.
type State struct {
	policy      Policy
	nodes       map[string]*node
	sorted      []*node // all nodes by name, also those that are gone
	kinds       map[string]*nodeKind
	order       []*nodeKind // by value, then key
	shapes      map[string]*shape
	waiting     map[JobID]*entry
	running     map[JobID]*run
	classes     map[uint64]*class // by hash of the key; never ranged over
	kindsOf     map[kindKeyOf]*jobKind
	accounts    map[accountKey]*account
	extras      map[extraKey]*extra
	kindList    []*jobKind // in no order
	accountList []*account // in no order
	tallies     map[tallyKey]*tally
	windows     map[string]*window
	due         deadlines

	seed       maphash.Seed // of classes
	classCount int
	nextClass  uint64
	nextKind   uint64
	mix        []mixShape // of the last round
	mixes      uint64     // ever made, to tell them apart
	timed      bool       // some limit counts GPU-minutes
	limitUse   int64      // see SetLimitUse
	lastIn     *Shape     // the request that was interned last, and its shape
	lastShape  *shape
	spare      buffers
	nodesStale bool
}

// run is a job that holds an allocation.
type run struct {
	Running
	shape   *shape
	ranks   []*rank
	limit   Time  // run time allowed
	milli   int64 // GPU thousandths, all ranks
	tallies [tallyKinds]*tally
}

// New makes an empty State.
func New(p Policy) (*State, error) {
	s := &State{
		nodes: map[string]*node{}, kinds: map[string]*nodeKind{}, shapes: map[string]*shape{},
		waiting: map[JobID]*entry{}, running: map[JobID]*run{}, classes: map[uint64]*class{}, seed: maphash.MakeSeed(),
		accounts: map[accountKey]*account{}, extras: map[extraKey]*extra{},
		kindsOf: map[kindKeyOf]*jobKind{}, tallies: map[tallyKey]*tally{}, windows: map[string]*window{},
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
	for i := range r.Ranks {
		if err := s.checkAllocation(r.Ranks[:i+1], fact); err != nil {
			return fmt.Errorf("start job %d: rank %d: %w", r.Job.ID, i, err)
		}
	}
	s.Dequeue(r.Job.ID)
	run := s.newRun(r)
	s.running[run.Job.ID] = run
	for _, k := range run.ranks {
		k.node.take(k)
	}
	s.charge(run, +1)
	return nil
}

// checkAllocation checks the last of a job's ranks.
func (s *State) checkAllocation(ranks []Allocation, fact bool) error {
	a := ranks[len(ranks)-1]
	n := s.nodes[a.Node]
	if a.MilliCPU < 0 || a.MemMiB < 0 || a.MilliCPU > maxAmount || a.MemMiB > maxAmount {
		return fmt.Errorf("holds %d milli CPU and %d MiB: want 0 or more of both", a.MilliCPU, a.MemMiB)
	}
	if n == nil && !fact {
		return fmt.Errorf("node %q is not known", a.Node)
	}
	used := map[string]int64{}
	var cpu, mem int64
	for _, b := range ranks {
		if b.Node == a.Node {
			cpu += b.MilliCPU
			mem += b.MemMiB
			for _, g := range b.GPUs {
				used[g.UUID] += g.Milli
			}
		}
	}
	for _, g := range a.GPUs {
		held, known := int64(0), false
		if n != nil {
			held, known = n.held(g.UUID)
		}
		switch {
		case g.Milli < 1 || g.Milli > WholeGPU:
			return fmt.Errorf("holds %d thousandths of GPU %s: want 1..1000", g.Milli, g.UUID)
		case !known && !fact:
			return fmt.Errorf("node %q reports no GPU %s", a.Node, g.UUID)
		case held+used[g.UUID] > WholeGPU:
			return fmt.Errorf("GPU %s of node %q is held already: %d of 1000 before, %d more asked", g.UUID, a.Node, held, used[g.UUID])
		}
	}
	if !fact && (cpu > n.cpuFree || mem > n.memFree) {
		return fmt.Errorf("node %q has %d milli CPU and %d MiB free: %d and %d asked", a.Node, n.cpuFree, n.memFree, cpu, mem)
	}
	return nil
}

// held is how much of a GPU is in use, and whether the node reports it.
func (n *node) held(uuid string) (milli int64, known bool) {
	for i, g := range n.GPUs {
		if g.UUID == uuid {
			return int64(n.used[i]), true
		}
	}
	for _, r := range n.ranks {
		for _, g := range r.lost {
			if g.UUID == uuid {
				milli += g.Milli
			}
		}
	}
	return milli, false
}

func (s *State) newRun(r Running) *run {
	r.Ranks = slices.Clone(r.Ranks)
	limit := r.Job.Limit
	if limit == 0 {
		limit = s.policy.DefaultLimit
	}
	if r.End == 0 {
		r.End = r.Start + limit
	}
	out := &run{Running: r, shape: s.intern(r.Job.Shape), limit: max(r.End-r.Start, 0)}
	out.Job.Shape = &out.shape.Shape
	out.shape.refs++
	out.shape.submitted++
	for i, a := range r.Ranks {
		n := s.nodes[a.Node]
		if n == nil {
			n = s.addNode(Node{Name: a.Node, State: Down, Reason: "removed"})
			n.gone = true
		}
		k := &rank{run: out, node: n, no: i, cpu: a.MilliCPU, mem: a.MemMiB, whole: out.shape.whole()}
		n.bind(k)
		out.ranks = append(out.ranks, k)
		out.milli += a.MilliGPU()
	}
	return out
}

// bind finds the rank's GPUs in the node's inventory.
func (n *node) bind(k *rank) {
	k.gpus, k.lost = nil, nil
	for _, g := range k.run.Ranks[k.no].GPUs {
		i := slices.IndexFunc(n.GPUs, func(x GPU) bool { return x.UUID == g.UUID })
		if i < 0 {
			k.lost = append(k.lost, g)
			continue
		}
		k.gpus = append(k.gpus, gpuUse{int32(i), int32(g.Milli)})
	}
}

// End records that a job holds nothing any more. It reports whether it did.
func (s *State) End(id JobID) bool {
	r := s.running[id]
	if r == nil {
		return false
	}
	s.charge(r, -1)
	for _, k := range r.ranks {
		k.node.give(k)
		if k.node.gone && k.node.idle() {
			s.dropNode(k.node)
		}
	}
	delete(s.running, id)
	r.shape.submitted--
	s.unref(r.shape)
	return true
}

// Resize records that a running job holds other CPU and memory; its GPUs and
// nodes stay. As with Adopt that is a fact, and the caller saw to it that there
// is room. It reports whether the job runs.
func (s *State) Resize(id JobID, ranks []Allocation) bool {
	r := s.running[id]
	if r == nil {
		return false
	}
	next := r.Running
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
	r := s.running[id]
	if r == nil {
		return false
	}
	r.Halting = true
	return true
}

// Running is a copy of a job that holds an allocation.
func (s *State) Running(id JobID) (Running, bool) {
	r := s.running[id]
	if r == nil {
		return Running{}, false
	}
	out := r.Running
	out.Ranks = slices.Clone(out.Ranks)
	return out, true
}

// SetNode adds a node or replaces what is known of it. Jobs on it keep what they
// hold: GPUs that it no longer reports stay charged to them and come back with
// the node's next report that names them.
func (s *State) SetNode(in Node) error {
	if err := in.Validate(); err != nil {
		return fmt.Errorf("set node: %w", err)
	}
	in.GPUs, in.Features = slices.Clone(in.GPUs), slices.Clone(in.Features)
	old := s.nodes[in.Name]
	if old == nil {
		s.addNode(in)
		return nil
	}
	ranks := old.ranks
	s.dropNode(old)
	n := s.addNode(in)
	for _, k := range ranks {
		k.node = n
		n.bind(k)
		n.take(k)
	}
	return nil
}

// RemoveNode forgets a node, or as much of it as no job holds. It reports
// whether it was known.
func (s *State) RemoveNode(name string) bool {
	n := s.nodes[name]
	if n == nil || n.gone {
		return false
	}
	if n.idle() {
		s.dropNode(n)
		return true
	}
	gone := n.Node
	gone.State, gone.Reason = Down, "removed"
	ranks := n.ranks
	s.dropNode(n)
	n = s.addNode(gone)
	n.gone = true
	for _, k := range ranks {
		k.node = n
		n.take(k)
	}
	return true
}

func (s *State) addNode(in Node) *node {
	n := &node{Node: in, folded: fold(in.Name), cpuFree: in.MilliCPU, memFree: in.MemMiB, used: make([]int32, len(in.GPUs))}
	for i, g := range in.GPUs {
		if !g.Drained {
			n.usable.add(i)
		}
		n.mark(i)
	}
	key := kindKey(&in)
	k := s.kinds[key]
	if k == nil {
		k = s.newKind(key, &n.Node)
	}
	n.kind = k
	k.nodes = append(k.nodes, n)
	k.stale = true
	s.nodes[in.Name] = n
	s.nodesStale = true
	s.cover(n)
	return n
}

func (s *State) dropNode(n *node) {
	k := n.kind
	k.nodes = slices.DeleteFunc(k.nodes, func(x *node) bool { return x == n })
	k.stale = true
	if len(k.nodes) == 0 {
		s.dropKind(k)
	}
	delete(s.nodes, n.Name)
	s.nodesStale = true
}

// Node is a copy of what is known of a node, and whether it is known.
func (s *State) Node(name string) (Node, bool) {
	n := s.nodes[name]
	if n == nil || n.gone {
		return Node{}, false
	}
	out := n.Node
	out.GPUs, out.Features = slices.Clone(out.GPUs), slices.Clone(out.Features)
	return out, true
}

// refresh brings the indexes up to date after nodes changed.
func (s *State) refresh() {
	if s.nodesStale {
		s.nodesStale = false
		s.sorted = slices.SortedFunc(maps.Values(s.nodes), func(a, b *node) int { return cmp.Compare(a.Name, b.Name) })
		for i, n := range s.sorted {
			n.no = i
		}
	}
	for _, k := range s.order {
		k.refresh()
	}
}
