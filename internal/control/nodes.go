package control

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gbatch/internal/control/effects"
	"gbatch/internal/control/fit"
	"gbatch/internal/control/heard"
	"gbatch/internal/control/picture"
	"gbatch/internal/control/reboot"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
)

// nodes is the nodes, and how often their desired sets were changed. Values are immutable.
type nodes struct {
	list     state.Nodes
	named    []string                // partitions, nil where that is to be worked out
	due      sched.Time              // not after when time alone makes something else of one; 0: of none
	epoch    uint64                  // of this start; makes versions of desired sets grow over restarts
	versions uint64                  // of desired sets, in this epoch
	ahead    map[string][]job.Number // of each node, the jobs whose images it was to have ahead by the last plan

	before sched.Time // when the node whose word is taken in was heard before; 0: not in this start
	booted sched.Time // when what ran there before it was restarted had ended at the latest; 0: it was not, since it was heard
	there  heard.Note // the last note; while records are loaded, of a controller before

	by string // who makes the change under way, empty for nobody

	cfg   *Config
	queue *queue // is told what is there
	out   *effects.Output
}

func (t *nodes) get(name string) *state.Node { return t.list.Get(name) }

// put replaces a node's value, or adds it; old is nil then.
func (t *nodes) put(n *state.Node) (old *state.Node) {
	t.due = sooner(t.due, t.next(n))
	if old = t.list.Put(n); old == nil || !slices.Equal(old.Partitions, n.Partitions) {
		t.named = nil
	}
	return old
}

// next is when time alone makes something else of a node; 0: never.
func (t *nodes) next(n *state.Node) sched.Time {
	if n.Kept != nil {
		return n.Heard
	}
	return sooner(n.Penalty(), t.cfg.patience().Next(n), n.EvictAt, reboot.Next(n, t.cfg.RebootTime))
}

// looked works out anew when something is due, after what was has been done: a node that is heard of puts
// it off, which is not looked for at each of its words.
func (t *nodes) looked() {
	t.due = 0
	for n := range t.list.All() {
		t.due = sooner(t.due, t.next(n))
	}
}

// remove drops a node that is there.
func (t *nodes) remove(name string) {
	t.list.Remove(name)
	t.named = nil
	t.queue.sched.RemoveNode(name)
	t.queue.due = true
	t.out.Store(state.Record{Kind: state.KindNode, Name: name}, state.Record{Kind: state.KindPast, Name: name})
	t.out.Nodes = append(t.out.Nodes, effects.NodeUpdate{Name: name, NodeChange: state.NodeChange{At: t.out.Now, State: "forgotten", Text: "forgotten", By: t.by}})
}

// version is a new one for a desired set.
func (t *nodes) version() uint64 {
	t.versions++
	return t.epoch<<32 | t.versions
}

// skipTo has versions be above one that was given in a time that is not known.
func (t *nodes) skipTo(version uint64) {
	if version > t.epoch<<32|t.versions {
		t.epoch, t.versions = version>>32, version&(1<<32-1)
	}
}

// names is all names, for people.
func (t *nodes) names() string {
	var names []string
	for n := range t.list.All() {
		names = append(names, n.Name)
	}
	return strings.Join(names, ", ")
}

// partitions is those that some node is in, nil if there are no nodes.
func (t *nodes) partitions() []string {
	if t.named != nil || t.list.Len() == 0 {
		return t.named
	}
	names := map[string]bool{}
	for n := range t.list.All() {
		for _, p := range n.Partitions {
			names[p] = true
		}
	}
	t.named = append([]string{}, slices.Sorted(maps.Keys(names))...) // none is not nil
	return t.named
}

// check verifies that nodes are found by name, that each job is listed where it has live ranks, and that no time is missed.
func (t *nodes) check(jobs *jobs) error {
	for n := range t.list.All() {
		if t.get(n.Name) != n {
			return fmt.Errorf("node %s is not in its place by name", n.Name)
		}
		if t.due != sooner(t.due, t.next(n)) {
			return fmt.Errorf("time makes something else of node %s at %d, and %d is said to be the first time", n.Name, t.next(n), t.due)
		}
		for _, num := range n.Jobs {
			if j := jobs.get(num); j == nil || !j.State.Active() || !j.On(n.Name) {
				return fmt.Errorf("node %s has job %d, which is not there", n.Name, num)
			}
		}
	}
	for j := range jobs.all() {
		if !j.State.Active() {
			continue
		}
		for _, r := range j.Attempt.Ranks {
			n := t.get(r.Alloc.Node)
			if n == nil && r.Phase == node.PhaseEnded { // forgotten since, while others of the gang end
				continue
			}
			if n == nil {
				return fmt.Errorf("job %d: it runs on %s, which is no node", j.Number, r.Alloc.Node)
			}
			if slices.Contains(n.Jobs, j.Number) != j.On(n.Name) {
				return fmt.Errorf("job %d: node %s and the job disagree whether it is there", j.Number, n.Name)
			}
		}
	}
	return nil
}

// noNode refuses what names a node that is not there.
func (t *nodes) noNode(name string) *state.Refusal {
	return &state.Refusal{Code: state.NotFound, Message: fmt.Sprintf("there is no node %q", name), Hint: "nodes here: " + t.names()}
}

// set replaces a node's value, or adds it. It is recorded when what is stored of
// it changed.
func (t *nodes) set(n state.Node) {
	t.note(&n)
	if old := t.get(n.Name); old == nil || old.Hash != n.Hash {
		n.Partitions = t.cfg.Partitions.Of(&n)
	}
	old := t.put(&n)
	if !t.out.NoRecords && (old == nil || !state.AlikeOnDisk(old, &n)) {
		if v := state.Encode(n); old == nil || string(v) != string(state.Encode(old)) {
			t.out.Store(state.Record{Kind: state.KindNode, Name: n.Name, Value: v})
		}
	}
	if old == nil || picture.Differs(old, &n) {
		must(t.queue.sched.SetNode(picture.Node(&n))) // checked when the inventory came
		t.queue.due = true
	}
}

// note adds to a node's past what is new of it.
func (t *nodes) note(n *state.Node) {
	if t.out.NoRecords {
		return
	}
	changes := fit.Changes(t.get(n.Name), n, t.out.Now, t.by)
	if len(changes) == 0 {
		return
	}
	n.Past = append(slices.Clip(n.Past), changes...)
	n.Past = n.Past[max(len(n.Past)-fit.MaxPast, 0):]
	t.out.Record(state.Record{Kind: state.KindPast, Name: n.Name}, n.Past)
	for _, c := range changes {
		t.out.Nodes = append(t.out.Nodes, effects.NodeUpdate{Name: n.Name, NodeChange: c})
	}
}

// wake gives a node's desired set a new version.
func (t *nodes) wake(name string) { t.setAndWake(*t.get(name)) }

// setAndWake replaces a node's value with one of another desired set.
func (t *nodes) setAndWake(n state.Node) {
	n.Version = t.version()
	t.set(n)
	t.out.Wake = append(t.out.Wake, n.Name)
}

// wakeAll wakes the nodes on which a job has live ranks.
func (t *nodes) wakeAll(j *state.Job) {
	for _, r := range j.Attempt.Ranks {
		if r.Phase != node.PhaseEnded {
			t.wake(r.Alloc.Node)
		}
	}
}

// arrive and leave keep the list of jobs with live ranks on a node.
func (t *nodes) arrive(name string, n job.Number) {
	v := *t.get(name)
	if !slices.Contains(v.Jobs, n) {
		v.Jobs = append(slices.Clip(v.Jobs), n)
	}
	t.setAndWake(v)
}

func (t *nodes) leave(name string, j *state.Job) {
	v := *t.get(name)
	i := slices.Index(v.Jobs, j.Number)
	left := i >= 0 && !j.On(name) // no other rank of it is there
	if left {
		v.Jobs = slices.Delete(slices.Clone(v.Jobs), i, i+1)
	}
	t.setAndWake(v)
	if left {
		t.stepReboot(name)
	}
}
