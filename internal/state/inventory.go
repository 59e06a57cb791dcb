package state

import (
	"encoding/json"

	"gbatch/internal/job"
	"gbatch/internal/node"
)

// Inventory is a node's inventory as records have it: with every field, under
// its name in Go. They are read without more, as JSON's names match in any case.
type Inventory struct{ node.Inventory }

type storedInventory struct {
	Hostname, DNSName, Version string
	Address                    string
	Cluster                    int
	CPUs                       int
	MemBytes                   int64
	DiskBytes                  int64
	GPUs                       []storedGPU
	CUDA                       int
	Driver                     string
	Features                   []string
	Simulated, AllowShare      bool
	Bridge, NoHost             bool
	Gang                       bool `json:",omitempty"`
	Together                   bool `json:",omitempty"`
	Privileged                 bool
	Several                    bool             `json:",omitempty"`
	Divides                    bool             `json:",omitempty"`
	Ahead                      bool             `json:",omitempty"`
	Covers                     bool             `json:",omitempty"`
	Capabilities               []job.Capability `json:",omitempty"`
	Runtimes                   []node.Runtime   `json:",omitempty"`
	Storage                    *[]node.Root     `json:",omitempty"` // absent: the node does not tell
}

type storedGPU struct {
	UUID, Model string
	Index       int
	MemBytes    int64
	ComputeCap  int
	NUMA        int
	Links       []string
	Unhealthy   string
}

// MarshalJSON writes the form of records.
func (v Inventory) MarshalJSON() ([]byte, error) {
	out := storedInventory{
		Hostname: v.Hostname, DNSName: v.DNSName, Version: v.Version, Address: v.Address, Cluster: v.Cluster, CPUs: v.CPUs, MemBytes: v.MemBytes,
		DiskBytes: v.DiskBytes, CUDA: v.CUDA, Driver: v.Driver, Features: v.Features, Simulated: v.Simulated, AllowShare: v.AllowShare,
		Bridge: v.Bridge, NoHost: v.NoHost, Gang: v.Gang, Together: v.Together, Privileged: v.Privileged, Several: v.Several, Divides: v.Divides, Ahead: v.Ahead, Covers: v.Covers, Capabilities: v.Capabilities, Runtimes: v.Runtimes,
	}
	if v.Storage != nil {
		out.Storage = &v.Storage
	}
	for _, g := range v.GPUs {
		out.GPUs = append(out.GPUs, storedGPU{g.UUID, g.Model, g.Index, g.MemBytes, g.ComputeCap, g.NUMA, g.Links, g.Unhealthy})
	}
	return json.Marshal(out)
}
