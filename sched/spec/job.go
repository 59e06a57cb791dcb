package spec

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Time is a moment in Unix milliseconds, or a length of time in milliseconds.
type Time int64

// Lengths of time.
const (
	Second Time = 1000
	Minute      = 60 * Second
	Hour        = 60 * Minute
	Day         = 24 * Hour
)

// Never is later than every moment.
const Never Time = 1 << 62

// JobID names a job to the scheduler. Its order breaks ties between jobs that
// are equal otherwise: the lower one goes first.
type JobID uint64

// WholeGPU is one whole GPU in thousandths.
const WholeGPU = 1000

// Shape is the part of a request that placement depends on: what one rank
// takes, how many ranks there are, and which nodes and GPUs will do. Shapes are
// compared by value; a *Shape must not change once it was handed over.
type Shape struct {
	Nodes    int   `json:"nodes,omitempty"`    // ranks, each on a node of its own, unless PerNode says otherwise; 0 means 1
	PerNode  int   `json:"perNode,omitempty"`  // so many ranks, of all groups together, may be on one node; 0 means 1
	MilliGPU int64 `json:"milliGpu,omitempty"` // per rank: 1000 is one whole GPU, 1..999 a share of one
	// RestMilliGPU is for one more rank with fewer GPUs, as 12 GPUs of nodes that
	// have 8 are one node and a rest of 4000. It goes to the node that has the most
	// free. A plan for later reckons with a whole rank for it.
	RestMilliGPU int64 `json:"restMilliGpu,omitempty"`
	AllGPUs      bool  `json:"allGpus,omitempty"`  // every usable GPU of the node, at least one: a whole node
	MilliCPU     int64 `json:"milliCpu,omitempty"` // per rank
	MemMiB       int64 `json:"memMib,omitempty"`   // per rank
	// AllMem is all memory of the node, which has MemMiB at least. Cores and GPUs
	// are left to others, who start there if they can do without memory.
	AllMem bool `json:"allMem,omitempty"`
	// Exclusive is a node without any other job. All cores, memory and GPUs are the
	// rank's; the amounts above are the least that the node has.
	Exclusive bool `json:"exclusive,omitempty"`

	// Partitions are names of which one will do: all ranks are on nodes of the same,
	// of the first of these where there is room. Empty: any node.
	Partitions    []string `json:"partitions,omitempty"`
	Cluster       int      `json:"cluster,omitempty"`       // 0: any
	Node          string   `json:"node,omitempty"`          // empty: any; case and everything but letters and digits are ignored
	GPUModels     []string `json:"gpuModels,omitempty"`     // any of these, as case-insensitive part of the model's name
	GPUMemMiB     int64    `json:"gpuMemMib,omitempty"`     // least memory of each GPU; of a shared one, of the share
	MinCUDA       int      `json:"minCuda,omitempty"`       // major*100 + minor of the node's driver
	DiskMiB       int64    `json:"diskMib,omitempty"`       // of the node's disk, for what containers write; per rank
	MinComputeCap int      `json:"minComputeCap,omitempty"` // 80 is 8.0
	Features      []string `json:"features,omitempty"`      // the node has all of these

	AnyFeatures  [][]string `json:"anyFeatures,omitempty"`  // of each list, the node has at least one
	NodeNames    []string   `json:"nodeNames,omitempty"`    // only these nodes, compared as Node is; empty: any
	ExcludeNodes []string   `json:"excludeNodes,omitempty"` // none of these
	Storage      []Storage  `json:"storage,omitempty"`      // the node has all of this, none of it away

	Licenses []License `json:"licenses,omitempty"` // of the site, for all ranks together

	// Groups are ranks after those above that take other amounts, each on a node of its
	// own too, or not, by PerNode. All ranks of a job start together, and what is not an amount holds for
	// all of them.
	Groups []Group `json:"groups,omitempty"`
}

// AskLicense asks for so many of the licence at a place of the list, which may be another
// shape's too.
func (s *Shape) AskLicense(i int, count int64) {
	s.Licenses = slices.Clone(s.Licenses)
	s.Licenses[i].Count = count
}

// License is so many of one of the site's counters.
type License struct {
	Name  string `json:"name"`
	Count int64  `json:"count"`
}

// Ranks is the number of ranks, at least one.
func (s *Shape) Ranks() int {
	n := s.Alike()
	if s.RestMilliGPU > 0 {
		n++
	}
	for i := range s.Groups {
		n += s.Groups[i].Nodes
	}
	return n
}

// Shares says that ranks may be on one node together.
func (s *Shape) Shares() bool { return s.PerNode > 1 && s.Ranks() > 1 }

// OneOnANode says that ranks take what cannot be added up on a node: a whole one, all memory
// of one, a share of a GPU, or a rest of GPUs.
func (s *Shape) OneOnANode() bool {
	share := func(g Group) bool { return g.MilliGPU%WholeGPU != 0 }
	return s.Whole() || s.AllMem || s.RestMilliGPU > 0 || s.MilliGPU%WholeGPU != 0 || slices.ContainsFunc(s.Groups, share)
}

// Alike is the number of ranks that have the shape's own amounts.
func (s *Shape) Alike() int { return max(s.Nodes, 1) }

// Whole says that a rank takes its node for itself.
func (s *Shape) Whole() bool { return s.AllGPUs || s.Exclusive }

// MemOf is the memory that a rank takes of a node that has so much, MiB.
func (s *Shape) MemOf(node int64) int64 {
	if s.AllMem {
		return node
	}
	return s.MemMiB
}

// validate reports every number in the shape that no request may have.
func (s *Shape) validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if s.Nodes < 0 || s.Nodes > maxRanks {
		bad("nodes is %d: want 0..%d", s.Nodes, maxRanks)
	}
	if s.MilliGPU < 0 || s.MilliGPU > MaxAmount {
		bad("milliGpu is %d: want 0 or more", s.MilliGPU)
	} else if s.MilliGPU > WholeGPU && s.MilliGPU%WholeGPU != 0 {
		bad("milliGpu is %d: want a share of one GPU (1..999) or whole GPUs (a multiple of 1000)", s.MilliGPU)
	}
	if s.RestMilliGPU < 0 || s.RestMilliGPU > 0 && (s.RestMilliGPU >= s.MilliGPU || s.RestMilliGPU%WholeGPU != 0) {
		bad("restMilliGpu is %d: want whole GPUs (a multiple of 1000), fewer than the other ranks have", s.RestMilliGPU)
	}
	for _, q := range []struct {
		name string
		v    int64
	}{{"milliCpu", s.MilliCPU}, {"memMib", s.MemMiB}, {"gpuMemMib", s.GPUMemMiB}, {"minCuda", int64(s.MinCUDA)}, {"diskMib", s.DiskMiB}, {"minComputeCap", int64(s.MinComputeCap)}} {
		if q.v < 0 || q.v > MaxAmount {
			bad("%s is %d: want 0 or more", q.name, q.v)
		}
	}
	if s.PerNode < 0 || s.PerNode > maxRanks {
		bad("perNode is %d: want 0..%d", s.PerNode, maxRanks)
	} else if s.PerNode > 1 && s.OneOnANode() {
		bad("perNode is %d: ranks that share nodes take neither a whole node, all memory of one, a share of a GPU nor a rest of GPUs", s.PerNode)
	}
	if len(s.Groups) > 0 {
		errs = append(errs, s.validateGroups())
	}
	for i, x := range s.Licenses {
		if x.Name == "" || x.Count < 1 || x.Count > MaxAmount || slices.ContainsFunc(s.Licenses[:i], func(y License) bool { return y.Name == x.Name }) {
			bad("licenses[%d] is %d of %q: want each one named once, and 1 or more of it", i, x.Count, x.Name)
		}
	}
	return errors.Join(errs...)
}

// Bounds on numbers, so that sums of them cannot overflow.
const (
	maxRanks    = 100_000
	MaxAmount   = 1 << 40
	MaxTime     = Never / 4
	MaxPriority = 1_000_000_000
)

// Job is a request in the queue, or the request of a running job.
type Job struct {
	ID      JobID
	Project string
	User    string
	QOS     string // empty: the policy's DefaultQOS
	Name    string
	Shape   *Shape

	Submitted Time
	Limit     Time // run time after which it is ended; 0: the policy's DefaultLimit
	LimitMin  Time // it may be given a limit down to this, where it starts sooner by it; 0: no other than Limit
	MinRun    Time // guaranteed before it may be halted for another job
	Predicted Time // expected run time, 0: not known; never later than Limit
	Priority  int  // adjustment by user (0 or less) or operator

	NotBefore Time // waits at least until then; its age counts from then. 0: none
	NotAfter  Time // must have started by then, or it is rejected. 0: none
	MaxQueued Time // rejected after waiting for so long. 0: for ever

	Interactive bool // starts in the first round that sees it, or is rejected
	Restartable bool // may be halted for another job and started again

	Bucket       string   // jobs of one bucket run at most BucketMax at once
	BucketMax    int      // 0: no bound
	Reservations []string // names of windows that it may use
}

// Validate reports every value that makes the job impossible to queue.
func (j *Job) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if j.Shape == nil {
		bad("shape is missing")
	} else if err := j.Shape.validate(); err != nil {
		errs = append(errs, err)
	} else if x := j.Shape; x.MilliCPU == 0 && x.MemMiB == 0 && x.MilliGPU == 0 && !x.Whole() && !x.AllMem {
		bad("asks for nothing: want cores, memory or GPUs")
	}
	for _, q := range []struct {
		name string
		v    Time
	}{{"submitted", j.Submitted}, {"limit", j.Limit}, {"limitMin", j.LimitMin}, {"minRun", j.MinRun}, {"predicted", j.Predicted},
		{"notBefore", j.NotBefore}, {"notAfter", j.NotAfter}, {"maxQueued", j.MaxQueued}} {
		if q.v < 0 || q.v > MaxTime {
			bad("%s is %d: want 0 or more milliseconds", q.name, q.v)
		}
	}
	if j.Priority < -MaxPriority || j.Priority > MaxPriority {
		bad("priority is %d: want -%d..%d", j.Priority, MaxPriority, MaxPriority)
	}
	if j.BucketMax < 0 {
		bad("bucketMax is %d: want 0 or more", j.BucketMax)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("job %d: %w", j.ID, err)
	}
	return nil
}

// Since is when the job became eligible: its age counts from there.
func (j *Job) Since() Time { return max(j.Submitted, j.NotBefore) }

// Deadline is the last moment at which the job may start; Never if none.
func (j *Job) Deadline() Time {
	d := Never
	if j.NotAfter > 0 {
		d = j.NotAfter
	}
	if j.MaxQueued > 0 {
		d = min(d, j.Submitted+j.MaxQueued)
	}
	return d
}

// Fold is a node's name as Shape.Node is compared with it.
func Fold(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= '0' && r <= '9', r >= 'a' && r <= 'z':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return -1
	}, name)
}
