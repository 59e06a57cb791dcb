package api

import (
	"time"

	"gbatch/internal/node"
)

// Paths of what was, and of what was used.
const (
	PathHistory = "/v1/history" // GET jobs that have ended; ?user=&project=&name=&state=&reason=&array=&start=&end=&limit=&newest=&after=&attempts=
	PathUsage   = "/v1/usage"   // GET what was used; ?by=&user=&project=&start=&end=
	PathShares  = "/v1/shares"  // GET the share tree
)

// PastJob is a job with what it used.
type PastJob struct {
	Job
	Used     *Used     `json:"used,omitempty"`     // absent where Private, and of arrays and templates
	Attempts []Attempt `json:"attempts,omitempty"` // where asked for
}

// Used is what a job held by all its tries, and what its last try made of it.
type Used struct {
	GPUSeconds    float64 `json:"gpuSeconds"` // held until now, as the three below
	CPUSeconds    float64 `json:"cpuSeconds"`
	MemGiBSeconds float64 `json:"memGibSeconds"`
	BilledHours   float64 `json:"billedHours"` // of a GPU of weight 1000

	ElapsedS   int64        `json:"elapsedS"`             // of the last try, running: to the nearest second once it is over
	CPUTimeS   float64      `json:"cpuTimeS"`             // of processors, by all ranks of the last try
	PeakMem    int64        `json:"peakMemBytes"`         // of the rank that had most
	GPU        *node.GPUUse `json:"gpu,omitempty"`        // of all its GPUs
	NodesKnown int          `json:"ranksKnown,omitempty"` // ranks whose node has said what they used

	Cores    int      `json:"cores,omitempty"`    // of all ranks of the last try
	MemBytes int64    `json:"memBytes,omitempty"` // of the rank of it that had most
	Advice   []string `json:"advice,omitempty"`   // what to ask for instead, in sentences; in lists where asked for
}

// History is a page of jobs that have ended, by their end.
type History struct {
	Jobs []PastJob `json:"jobs"`
	Next string    `json:"next,omitempty"` // give it as after for the next page; empty: this is the last
}

// UsageReport is the answer of GET PathUsage.
type UsageReport struct {
	Start time.Time  `json:"start"` // the first day
	End   time.Time  `json:"end"`   // the first day that is not counted
	By    []string   `json:"by"`    // dimensions: project, user, model, cluster, day, month
	Rows  []UsageRow `json:"rows"`
	Total UsageRow   `json:"total"`
}

// UsageRow is what was used of one value of each dimension asked for.
type UsageRow struct {
	Project string `json:"project,omitempty"`
	User    string `json:"user,omitempty"`
	Model   string `json:"model,omitempty"` // "none": without GPUs
	Cluster int    `json:"cluster,omitempty"`
	Day     string `json:"day,omitempty"`   // 2026-11-21, UTC
	Month   string `json:"month,omitempty"` // 2026-11

	BilledHours   float64          `json:"billedHours"` // of a GPU of weight 1000
	GPUSeconds    float64          `json:"gpuSeconds"`
	CPUSeconds    float64          `json:"cpuSeconds"` // of cores held
	MemGiBSeconds float64          `json:"memGibSeconds"`
	Starts        int64            `json:"starts"`          // tries that were given resources
	WaitSeconds   float64          `json:"waitSeconds"`     // all that those waited in the queue
	Ended         map[string]int64 `json:"ended,omitempty"` // jobs by final state
}

// Share is one line of the share tree: a project, or a user in it.
type Share struct {
	Project    string  `json:"project"`
	User       string  `json:"user,omitempty"` // empty: the project's own line
	Parent     string  `json:"parent,omitempty"`
	Depth      int     `json:"depth"`
	Shares     int64   `json:"shares"`
	NormShares float64 `json:"normShares"`          // of its siblings'
	UsageHours float64 `json:"usageHours"`          // billed, with its decay
	NormUsage  float64 `json:"normUsage"`           // of its siblings'
	LevelFS    float64 `json:"levelFs"`             // normShares / normUsage; -1: nothing used
	FairShare  float64 `json:"fairShare,omitempty"` // of users: 0 to 1, the higher the sooner
	Rank       int     `json:"rank,omitempty"`      // of users: 1 goes first

	TotalHours float64 `json:"totalHours"` // billed, ever
	MonthHours float64 `json:"monthHours"` // billed in this calendar month (UTC)
	Budget     *Budget `json:"budget,omitempty"`
}

// Budget is what a project and those below it may use.
type Budget struct {
	Hours   float64 `json:"hours"` // as billed
	Used    float64 `json:"usedHours"`
	Monthly bool    `json:"monthly,omitempty"` // for each calendar month (UTC), else in all
}

// ShareList is the answer of GET PathShares, depth first.
type ShareList struct {
	Shares []Share `json:"shares"`
}
