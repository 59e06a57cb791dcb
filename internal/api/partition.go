package api

// Partition is a name for nodes, with the bounds of jobs that run there by it. What is
// not bounded is left out, and empty lists are everybody.
type Partition struct {
	Name     string   `json:"name"`
	Nodes    []string `json:"nodes"`              // that are known and in it
	Default  bool     `json:"default,omitempty"`  // of jobs that name none
	State    string   `json:"state"`              // up; down: jobs wait; drain: no more are taken; inactive: both
	Reason   string   `json:"reason,omitempty"`   // why it is not up
	Priority int64    `json:"priority,omitempty"` // 0 to 1000

	DefaultDurationS int64 `json:"defaultDurationS,omitempty"`
	MaxDurationS     int64 `json:"maxDurationS,omitempty"`
	MinNodes         int   `json:"minNodes,omitempty"` // of a job
	MaxNodes         int   `json:"maxNodes,omitempty"`
	MaxGPUs          int   `json:"maxGpus,omitempty"` // of a job, on all its nodes
	MaxCPUsPerNode   int   `json:"maxCpusPerNode,omitempty"`
	MaxMemPerNode    int64 `json:"maxMemPerNode,omitempty"` // bytes
	MemPerCore       int64 `json:"memPerCore,omitempty"`    // bytes; of jobs that do not say

	Projects    []string `json:"projects,omitempty"`
	NotProjects []string `json:"notProjects,omitempty"`
	QOS         []string `json:"qos,omitempty"`
	NotQOS      []string `json:"notQos,omitempty"`
	Closed      bool     `json:"closed,omitempty"` // its users do not include the caller
}
