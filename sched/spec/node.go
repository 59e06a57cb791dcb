package spec

import (
	"errors"
	"fmt"
)

// NodeState says whether a node takes jobs.
type NodeState string

// The states. Empty means Up. Jobs that run on a node that is not up keep
// their allocation until End.
const (
	Up      NodeState = "up"
	Drained NodeState = "drained" // by an operator, or unhealthy: nothing new starts here
	Down    NodeState = "down"    // not reachable
)

// Node is a machine as it reports itself and as operators marked it.
type Node struct {
	Name       string    `json:"name"`
	Cluster    int       `json:"cluster"`
	Switch     string    `json:"switch,omitempty"` // gangs prefer nodes of one switch
	MilliCPU   int64     `json:"milliCpu"`
	MemMiB     int64     `json:"memMib"`
	GPUs       []GPU     `json:"gpus,omitempty"`
	DiskMiB    int64     `json:"diskMib,omitempty"` // that jobs can reserve for what they write
	CUDA       int       `json:"cuda,omitempty"`    // driver's version: major*100 + minor
	Features   []string  `json:"features,omitempty"`
	Partitions []string  `json:"partitions,omitempty"` // that it is in
	State      NodeState `json:"state,omitempty"`
	Reason     string    `json:"reason,omitempty"`     // why it is not up
	AllowShare bool      `json:"allowShare,omitempty"` // shares of its GPUs may be given out
	Apart      bool      `json:"apart,omitempty"`      // ranks of one job cannot be here together
	Storage    []Root    `json:"storage,omitempty"`    // that jobs can mount; nil: not told
}

// GPU is one device, or one MIG instance, of a node. It is not what a node tells
// the controller, which says more of the hardware: it is what placement looks at,
// with what operators decided, so that the scheduler can be used alone.
type GPU struct {
	UUID       string   `json:"uuid"`
	Model      string   `json:"model"`
	MemMiB     int64    `json:"memMib"`
	ComputeCap int      `json:"computeCap,omitempty"` // 80 is 8.0
	NUMA       int      `json:"numa"`                 // -1 unknown
	Links      []string `json:"links,omitempty"`      // UUIDs that it has NVLink to
	Drained    bool     `json:"drained,omitempty"`    // nothing new starts on it
	Reason     string   `json:"reason,omitempty"`     // why
}

// MaxGPUs bounds the GPUs of one node, MIG instances counted one by one.
const MaxGPUs = 128

// Validate reports everything that makes the inventory unusable.
func (n *Node) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if n.Name == "" {
		bad("name is empty")
	}
	switch n.State {
	case "", Up, Drained, Down:
	default:
		bad("state is %q: want up, drained or down", n.State)
	}
	if n.MilliCPU < 0 || n.MilliCPU > MaxAmount || n.MemMiB < 0 || n.MemMiB > MaxAmount {
		bad("has %d milli CPU and %d MiB: want 0 or more of both", n.MilliCPU, n.MemMiB)
	}
	if len(n.GPUs) > MaxGPUs {
		bad("has %d GPUs: the most is %d", len(n.GPUs), MaxGPUs)
	}
	seen := map[string]bool{}
	for _, g := range n.GPUs {
		if g.UUID == "" || seen[g.UUID] {
			bad("has a GPU with the UUID %q: want each one named once", g.UUID)
		}
		seen[g.UUID] = true
		if g.MemMiB < 0 || g.MemMiB > MaxAmount {
			bad("GPU %s has %d MiB: want 0 or more", g.UUID, g.MemMiB)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("node %q: %w", n.Name, err)
	}
	return nil
}

// Allocation is what one rank holds. Which cores those are is the node's choice.
type Allocation struct {
	Node     string     `json:"node"`
	GPUs     []GPUShare `json:"gpus,omitempty"` // in the order of the node's inventory
	MilliCPU int64      `json:"milliCpu"`
	MemMiB   int64      `json:"memMib"`
	DiskMiB  int64      `json:"diskMib,omitempty"`
}

// GPUShare is a GPU, or a part of one.
type GPUShare struct {
	UUID  string `json:"uuid"`
	Milli int64  `json:"milli"` // of 1000
}

// MilliGPU is the sum over the allocation's GPUs.
func (a *Allocation) MilliGPU() int64 {
	var sum int64
	for _, g := range a.GPUs {
		sum += g.Milli
	}
	return sum
}

// Running is a job that holds an allocation, from the decision to start it
// until End.
type Running struct {
	Job     Job
	Ranks   []Allocation
	Start   Time
	End     Time // start + limit; 0: the policy's DefaultLimit is added
	Halting bool // it was told to end: its resources are expected within the policy's HaltGrace
}
