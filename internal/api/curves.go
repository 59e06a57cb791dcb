package api

import "time"

// Curves is the answer of GET /v1/jobs/{id}/curves: what a rank of a job has used
// over its time, in at most 240 points, which stand for longer the longer it runs.
// Memory is the most in a point's time, all else the mean. Lists are as long as At,
// with null where something is not known; what is never known has none.
type Curves struct {
	Attempt  uint32     `json:"attempt"`
	Rank     int        `json:"rank"`
	Begin    *time.Time `json:"begin,omitempty"`       // of the first point; none: nothing was measured, or it is kept no more
	StepS    int64      `json:"stepS,omitempty"`       // seconds that a point stands for
	At       []int64    `json:"at,omitempty"`          // seconds after begin, where each point begins
	GPU      []*float64 `json:"gpu,omitempty"`         // percent of time in which a kernel ran, mean of the rank's GPUs
	GPUMem   []*float64 `json:"gpuMemBytes,omitempty"` // of all of them
	CPU      []*float64 `json:"cpus,omitempty"`        // cores that were busy
	Mem      []*float64 `json:"memBytes,omitempty"`    // with the page cache that counts for it
	Received []*float64 `json:"receivedBps,omitempty"` // bytes a second, by a network of its own
	Sent     []*float64 `json:"sentBps,omitempty"`     // bytes a second
	Power    []*float64 `json:"watts,omitempty"`       // of its GPUs
	Granted  Granted    `json:"granted"`               // to compare with
}

// Granted is what a rank may use.
type Granted struct {
	GPUs        float64 `json:"gpus,omitempty"`
	GPUMemBytes int64   `json:"gpuMemBytes,omitempty"` // of GPUs that are known still
	CPUs        float64 `json:"cpus"`
	MemBytes    int64   `json:"memBytes"`
}
