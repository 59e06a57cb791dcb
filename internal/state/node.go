package state

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/sched"
)

// Node is the controller's picture of a node. Values are immutable. What it says
// again at its next sync, as its health, is not stored.
type Node struct {
	Name      string    `json:"name"`
	Instance  string    `json:"instance"` // of its state directory; another one means its ranks are gone
	Boot      string    `json:"boot"`
	Hash      string    `json:"hash"` // of the inventory it sent last
	Inventory Inventory `json:"inventory"`
	Drained   string    `json:"drained,omitempty"` // reason an operator gave, or a fault; empty: not drained
	Faults    uint64    `json:"faults,omitempty"`  // the last fault of the instance for which it was drained

	Reboot  *Reboot    `json:"reboot,omitempty"`  // an operator's order, until the node is back; nil: none
	EvictAt sched.Time `json:"evictAt,omitempty"` // what still runs here then is ended or moved; 0: it goes on

	DrainedGPUs map[string]string `json:"drainedGpus,omitempty"` // UUID to the reason an operator gave
	Trouble     *Trouble          `json:"trouble,omitempty"`     // jobs that failed there in a row, nil if none
	Unsure      bool              `json:"unsure,omitempty"`      // a backup was restored: what it has beyond that is not gone yet

	Knows sched.Time `json:"knows,omitempty"` // when it was last answered, as it says; stored each KnowsEvery

	Partitions []string `json:"-"` // that it is in, by the rules in force

	Past []NodeChange `json:"-"` // what became of it lately, the newest last; stored under KindPast

	Unhealthy []string          `json:"-"`
	Refused   Refused           `json:"-"` // the inventory that it sent last, where that cannot be used
	LastSeen  sched.Time        `json:"-"` // by which its silence counts: after a start, from then on
	Heard     sched.Time        `json:"-"` // last, at the latest; before LastSeen: by a controller before this one
	Said      sched.Time        `json:"-"` // when its word on its ranks was last taken in; 0: not in this start
	Kept      []node.RankStatus `json:"-"` // its word since, which there was no room to record: taken in when there is
	Double    string            `json:"-"` // another machine that says it is this one, until that was told; empty: none
	Suspect   bool              `json:"-"` // silent for too long: no new jobs
	Lost      bool              `json:"-"` // silent for so long that its ranks were given up

	Prepulls []Prepull    `json:"-"` // images to have ahead of a start
	Jobs     []job.Number `json:"-"` // with a live rank here, in the order they came
	Version  uint64       `json:"-"` // of its desired set; grows over restarts too
}

// AlikeOnDisk says of two nodes that their records are alike for certain. What is
// shared is not looked at, so it costs little where it is called most: each rank
// that comes or goes changes its node, and almost never what is stored of it.
func AlikeOnDisk(a, b *Node) bool { return reflect.DeepEqual(onDisk(*a), onDisk(*b)) }

// KnowsEvery is how far what is stored of Node.Knows is behind at most, while the node is heard.
const KnowsEvery = sched.Hour

// onDisk is the node without what is not stored.
func onDisk(n Node) Node {
	n.Knows -= n.Knows % KnowsEvery
	n.Partitions, n.Past, n.Unhealthy, n.Refused, n.LastSeen, n.Heard, n.Said, n.Double, n.Suspect, n.Lost = nil, nil, nil, Refused{}, 0, 0, 0, "", false, false
	n.Kept, n.Prepulls, n.Jobs, n.Version = nil, nil, nil, 0
	return n
}

// Refused is an inventory that was not taken, so that it is not asked for again.
type Refused struct{ Hash, Why string }

// NodeChange is one thing that happened to a node.
type NodeChange struct {
	At     sched.Time `json:"at"`
	State  string     `json:"state"`            // of the node from then on
	Text   string     `json:"text"`             // what happened
	Reason string     `json:"reason,omitempty"` // why it is not up
	By     string     `json:"by,omitempty"`     // who did it; empty: nobody, it happened
}

// Since is from when on the node has been in its state; 0: not known.
func (n *Node) Since() (at sched.Time) {
	word, _ := n.State()
	for _, c := range slices.Backward(n.Past) {
		if c.State != word {
			break
		}
		at = c.At
	}
	return at
}

// State is the node's state in one word, with the reason if it is not up.
func (n *Node) State() (string, string) {
	switch {
	case n.Reboot.underWay():
		return "rebooting", n.drainedFor()
	case n.Lost:
		return "lost", n.silence()
	case n.Suspect:
		return "suspect", n.silence()
	case n.Drained != "":
		return "drained", n.drainedFor()
	case n.Unsure:
		return "unhealthy", "the controller's records are of an older state: it has yet to say what it runs, and to end what is not wanted any more"
	case n.Penalty() > 0:
		return "penalized", n.Trouble.Why
	case len(n.Unhealthy) > 0:
		return "unhealthy", strings.Join(n.Unhealthy, "; ")
	}
	return "up", ""
}

// DrainFor drains the node for what it says has happened to it, once for each: an
// operator who has seen to it and resumes the node is not asked again.
func (n *Node) DrainFor(instance string, faults []node.Fault) {
	if instance != n.Instance {
		n.Faults = 0
	}
	for _, f := range faults {
		if f.Seq <= n.Faults {
			continue
		}
		n.Faults = f.Seq
		switch {
		case n.Drained == "":
			n.Drained = f.Text + " (gnoded)"
		case len(n.Drained) < maxDrained:
			n.Drained += "; " + f.Text + " (gnoded)"
		}
	}
}

// maxDrained is how long a reason may be for another one to be added.
const maxDrained = 2 << 10

// OutOfService is why nothing new starts on a GPU; empty: it is fit for jobs.
func (n *Node) OutOfService(g node.GPU) string {
	if r := n.DrainedGPUs[g.UUID]; r != "" {
		return "drained: " + r
	}
	return g.Unhealthy
}

// ModelOf is the model of an allocation's GPUs: those of one rank are alike.
func (n *Node) ModelOf(a sched.Allocation) string {
	if len(a.GPUs) == 0 {
		return ""
	}
	for _, g := range n.Inventory.GPUs {
		if g.UUID == a.GPUs[0].UUID {
			return g.Model
		}
	}
	return ""
}

// FindGPU is the UUID of a GPU that a person names.
func (n *Node) FindGPU(text string) (string, *Refusal) {
	var found []string
	for _, g := range n.Inventory.GPUs {
		if text == fmt.Sprint(g.Index) || text == g.UUID {
			return g.UUID, nil
		}
		if len(text) >= 6 && strings.HasPrefix(strings.TrimPrefix(g.UUID, "GPU-"), strings.TrimPrefix(text, "GPU-")) {
			found = append(found, g.UUID)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	return "", &Refusal{Code: NotFound, Message: fmt.Sprintf("node %s has no one GPU %q", n.Name, text),
		Hint: "give its index or its UUID, as `ginfo --gpus` shows them"}
}

// Trouble is what speaks against a node. Immutable.
type Trouble struct {
	Jobs  []job.Number `json:"jobs"`            // that failed there in a row, each once
	Times int          `json:"times,omitempty"` // penalties since something succeeded
	Until sched.Time   `json:"until,omitempty"` // no new jobs before; 0: it gets jobs
	Why   string       `json:"why,omitempty"`
}

// Penalty is when the node's penalty ends; 0 if it has none.
func (n *Node) Penalty() sched.Time {
	if n.Trouble == nil {
		return 0
	}
	return n.Trouble.Until
}

// Prepull is a waiting job whose image a node shall have by the time that the
// plan gives for its start, so that its GPUs do not wait for the image.
type Prepull struct {
	Job      job.Number
	Answered bool // the node has said what became of it
}
