// Package partition is nodes that have a name together: which these are, and which
// jobs may ask for them, by whom they belong to and by what they ask. It is pure and
// changes no job; what becomes of those that were taken is the scheduler's.
package partition

import (
	"slices"
	"strings"

	"gbatch/internal/state"
	"gbatch/sched"
)

// State says what a partition does with jobs.
type State string

// The states. Empty is Up.
const (
	Up       State = "up"
	Down     State = "down"     // jobs are taken, and wait
	Drain    State = "drain"    // no more jobs are taken; those that wait may start
	Inactive State = "inactive" // neither
)

// Partition is a name for nodes, with the bounds of jobs that run there by it. Bounds
// of 0 are none, and empty lists name everybody.
type Partition struct {
	Name     string
	Default  bool // of jobs that name neither a partition nor a cluster
	State    State
	Reason   string // why it is not up, for people
	Priority int64  // 0..1000

	AllNodes bool
	Nodes    []string // by name; nodes that have Feature(Name) belong to it too
	Clusters []int    // all nodes of these

	DefaultRun, MaxRun sched.Time // time limit of jobs that say none; the longest that they may say
	MinNodes, MaxNodes int        // of a job
	MaxMilliGPU        int64      // of a job, on all its nodes
	MaxMilliCPU        int64      // of a job on each node
	MaxMiB             int64      // memory, likewise

	Projects, NotProjects []string
	QOS, NotQOS           []string // "" is the class of jobs that name none
}

// List is all partitions of a site, in the order of its configuration.
type List []Partition

// featureOf is in front of a partition's name where a node says that it is in it.
const featureOf = "partition="

// Of is the names of the partitions that a node is in: in the order of the list, then
// those that only the node itself names.
func (l List) Of(n *state.Node) (names []string) {
	for i := range l {
		if p := &l[i]; p.has(n) {
			names = append(names, p.Name)
		}
	}
	for _, f := range n.Inventory.Features {
		if name, ok := strings.CutPrefix(f, featureOf); ok && name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func (p *Partition) has(n *state.Node) bool {
	return p.AllNodes || slices.Contains(p.Clusters, n.Inventory.Cluster) || slices.Contains(n.Inventory.Features, featureOf+p.Name) ||
		slices.ContainsFunc(p.Nodes, func(name string) bool { return strings.EqualFold(name, n.Name) })
}

// get is the partition of that name, nil if the list has none.
func (l List) get(name string) *Partition {
	if i := slices.IndexFunc(l, func(p Partition) bool { return p.Name == name }); i >= 0 {
		return &l[i]
	}
	return nil
}

// Policy is what the scheduler needs to know of them.
func (l List) Policy() map[string]sched.Partition {
	out := map[string]sched.Partition{}
	for _, p := range l {
		out[p.Name] = sched.Partition{Priority: p.Priority, Down: p.State == Down || p.State == Inactive, Reason: p.Reason}
	}
	return out
}

// ofUnnamed is the partition of jobs that name none, nil if there is none such.
func (l List) ofUnnamed() *Partition {
	if i := slices.IndexFunc(l, func(p Partition) bool { return p.Default }); i >= 0 {
		return &l[i]
	}
	return nil
}
