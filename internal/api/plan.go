package api

import "time"

// PathPlan is what nodes do and are to do, over time.
const PathPlan = "/v1/plan" // GET; ?text=&model=&worst=&offset=&limit=

// Plan is the answer of PathPlan: by the last round of the scheduler. It is what
// would come if nothing else did; a job that ends early, or one that comes, changes it.
type Plan struct {
	Now   time.Time  `json:"now"`   // by the controller's clock
	Nodes []PlanNode `json:"nodes"` // by name, or as ?worst= says
	Total int        `json:"total"` // nodes that were asked for, of which Nodes may be a part
}

// PlanNode is what one node does and is to do.
type PlanNode struct {
	Name  string     `json:"name"`
	State string     `json:"state"` // as of Node
	GPUs  int        `json:"gpus"`
	Spans []PlanSpan `json:"spans"` // by their start
}

// The kinds of a PlanSpan.
const (
	PlanRunning     = "running"     // a job holds it
	PlanPromised    = "promised"    // a waiting job has this place in the plan
	PlanReserved    = "reserved"    // a reservation keeps it for some
	PlanMaintenance = "maintenance" // a reservation keeps it for nobody
)

// PlanSpan is a time during which something of a node is taken.
type PlanSpan struct {
	Kind    string    `json:"kind" enum:"running,promised,reserved,maintenance"`
	Job     string    `json:"job,omitempty"`     // its id; of a promise only for those who may see the job
	User    string    `json:"user,omitempty"`    // whose job it is
	Name    string    `json:"name,omitempty"`    // of the job, for those who may see it, or of the reservation
	Start   time.Time `json:"start"`             // of a promise not before now
	End     time.Time `json:"end,omitzero"`      // at the latest: a job's time limit; a time that has passed: it is being ended; absent: no limit
	GPUs    float64   `json:"gpus,omitempty"`    // of this node
	CPUs    int       `json:"cpus,omitempty"`    // of this node; of a reservation of whole nodes all of it
	Private bool      `json:"private,omitempty"` // the caller may not see the job
}
