package api

import (
	"time"

	"gbatch/internal/job"
)

// Explanation is the answer of GET /v1/jobs/{id}/explain: why a queued job
// waits, by the code that decided it.
type Explanation struct {
	ID        string       `json:"id"` // as people type it, see Job
	Number    job.Number   `json:"number"`
	State     job.State    `json:"state"`
	Reasons   []Reason     `json:"reasons,omitempty"` // all at once, in a fixed order
	Estimate  *Estimate    `json:"estimate,omitempty"`
	Priority  *Priority    `json:"priority,omitempty"`
	Before    []job.Number `json:"before,omitempty"`    // the first of those before it by position that have a place in the plan on nodes that it could use
	NBefore   int          `json:"nBefore,omitempty"`   // how many there are
	Position  int          `json:"position,omitempty"`  // in the order of priority, as JobDetail has it; absent: it has no place
	NumQueued int          `json:"numQueued,omitempty"` // how many have one

	Nodes  []NodeVerdict `json:"nodes,omitempty"`
	Advice []Advice      `json:"advice,omitempty"` // each was tried out on the current state
}

// Reason is one thing that keeps a job from starting.
type Reason struct {
	Code string    `json:"code"`
	Text string    `json:"text"`
	At   time.Time `json:"at,omitzero"` // when it ends, where that is known
}

// Priority is a job's points by factor.
type Priority struct {
	Total     int64 `json:"total"`
	Age       int64 `json:"age"`
	FairShare int64 `json:"fairShare"`
	Size      int64 `json:"size"`
	QOS       int64 `json:"qos"`
	Partition int64 `json:"partition,omitempty"`
	User      int64 `json:"user"` // adjustment by the user or an operator
	Slowdown  int64 `json:"slowdown,omitempty"`
	Small     int64 `json:"small,omitempty"`
	Boosted   bool  `json:"boosted,omitempty"` // has waited so long that it goes before all others
}

// NodeVerdict is what a rank of the job finds on a node.
type NodeVerdict struct {
	Node     string    `json:"node"`
	Code     string    `json:"code,omitempty"` // empty: there is room
	Text     string    `json:"text,omitempty"`
	FreeGPUs float64   `json:"freeGpus"` // that satisfy its constraints
	FreeCPUs int       `json:"freeCpus"`
	FreeMem  int64     `json:"freeMemBytes"`
	At       time.Time `json:"at,omitzero"` // when there is room by the plan
}

// Advice is a change to the job that was tried out and lets it start sooner.
type Advice struct {
	Change string    `json:"change"` // as "ask for 2 GPUs"
	Text   string    `json:"text"`   // as "would start now on gpu1"
	Now    bool      `json:"now"`
	At     time.Time `json:"at,omitzero"`
	Nodes  []string  `json:"nodes,omitempty"`

	Code      string   `json:"code"`                // as fewer-gpus, shorter-limit
	LimitS    int64    `json:"limitS,omitempty"`    // the time limit that an update of the job gives it
	Resources *Advised `json:"resources,omitempty"` // of a job to submit in its place
}

// Advised is what request.resources of a document would have instead of what it has.
// What is absent stays.
type Advised struct {
	GPUs        float64  `json:"gpus,omitempty"`
	CPUs        int      `json:"cpus,omitempty"`
	CPUMemoryGB int      `json:"cpuMemoryGb,omitempty"`
	GPUModel    []string `json:"gpuModel,omitempty"`
	ClusterID   *int     `json:"clusterId,omitempty"` // 0: any
}
