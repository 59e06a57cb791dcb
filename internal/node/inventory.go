package node

import "gbatch/internal/job"

// Inventory is what a node has to give. It is sent when it changes.
type Inventory struct {
	Hostname   string   `json:"hostname"`
	DNSName    string   `json:"dnsName"`
	Address    string   `json:"address,omitempty"`   // by which other nodes reach it; empty: dnsName
	ImagePort  int      `json:"imagePort,omitempty"` // on which it gives image layers to other nodes; 0: it does not
	Cluster    int      `json:"cluster"`
	Version    string   `json:"version"`
	CPUs       int      `json:"cpus"`     // cores for jobs, reserved ones not counted
	MemBytes   int64    `json:"memBytes"` // for jobs
	GPUs       []GPU    `json:"gpus,omitempty"`
	DiskBytes  int64    `json:"diskBytes,omitempty"` // that jobs can reserve for what their containers write
	CUDA       int      `json:"cuda,omitempty"`      // major*100 + minor, as 1204
	Driver     string   `json:"driver,omitempty"`
	Features   []string `json:"features,omitempty"`
	Simulated  bool     `json:"simulated,omitempty"`
	AllowShare bool     `json:"allowShare,omitempty"` // fractional GPUs may run here
	Bridge     bool     `json:"bridge,omitempty"`     // containers can have a network of their own
	Gang       bool     `json:"gang,omitempty"`       // and one with those of other nodes
	Together   bool     `json:"together,omitempty"`   // ranks of one job that share a network can be here together, likewise
	NoHost     bool     `json:"noHost,omitempty"`     // none may use the node's
	Privileged bool     `json:"privileged,omitempty"` // privileged jobs may run here
	Several    bool     `json:"several,omitempty"`    // several programs of a job can run at once, which an older node does not know
	Divides    bool     `json:"divides,omitempty"`    // and each have some of its GPUs, likewise
	Ahead      bool     `json:"ahead,omitempty"`      // ranks can wait here for others to end, likewise
	Covers     bool     `json:"covers,omitempty"`     // files of jobs can lie in what they mount, likewise

	Capabilities []job.Capability `json:"capabilities,omitempty"` // that jobs may ask for here
	Runtimes     []Runtime        `json:"runtimes,omitempty"`     // likewise, sorted by name

	// Storage is what jobs can mount, in the order of the names. Nil is that the
	// node, an older one, does not tell.
	Storage []Root `json:"storage"`
}

// Root is a root of the site's storage on a node: what lies below Name.
type Root struct {
	Name     string `json:"name"` // as /project, or .ssh
	ReadOnly bool   `json:"readOnly,omitempty"`
	Away     string `json:"away,omitempty"` // why it cannot be mounted now; empty: it can
}

// Runtime is a program that runs containers instead of the usual one.
type Runtime struct {
	Name   string `json:"name"`
	NoGPUs bool   `json:"noGpus,omitempty"` // its containers can have none
}

// GPU is a device, or a MIG instance, as its driver tells it. What clients see
// is an api.GPU: it says who has it too, and puts into words what is a number here.
type GPU struct {
	UUID       string   `json:"uuid"`
	Index      int      `json:"index"`
	Model      string   `json:"model"`
	MemBytes   int64    `json:"memBytes"`
	ComputeCap int      `json:"computeCap,omitempty"` // 80 is 8.0
	NUMA       int      `json:"numa"`                 // -1 unknown
	Links      []string `json:"links,omitempty"`      // UUIDs it has NVLink to
	Unhealthy  string   `json:"unhealthy,omitempty"`  // empty: fit for jobs
}
