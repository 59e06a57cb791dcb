package node

// GPUUse is what a rank's GPUs did, as its node has sampled them. Of a shared
// GPU it is what all on it did: the driver does not tell them apart.
type GPUUse struct {
	Utilization    float64 `json:"utilization"`           // percent of time in which a kernel ran, mean of all its GPUs
	MaxUtilization float64 `json:"maxUtilization"`        // of any of them at any sample
	MaxMem         int64   `json:"maxMemBytes,omitempty"` // used at any sample, of the one that had most
	Mem            int64   `json:"memBytes,omitempty"`    // that one has
	EnergyJ        float64 `json:"energyJ,omitempty"`     // of all of them; 0: not known
	Samples        int64   `json:"samples"`
	Simulated      bool    `json:"simulated,omitempty"` // there are no such GPUs, and this is made up
}

// LiveUse is what a rank that runs has used until now.
type LiveUse struct {
	CPUSeconds float64 `json:"cpuSeconds"`
	Mem        int64   `json:"memBytes"` // now
	PeakMem    int64   `json:"peakMemBytes,omitempty"`
	GPU        *GPUUse `json:"gpu,omitempty"`
	GPUMem     *int64  `json:"gpuMemBytes,omitempty"` // now, of all its GPUs
	Net        *NetUse `json:"net,omitempty"`         // of one with a network of its own
	AtMS       int64   `json:"atMs,omitempty"`        // when it was measured, by the node's clock; 0: not known
}

// NetUse is what went through a container's own network since it began.
type NetUse struct {
	Received int64 `json:"receivedBytes"`
	Sent     int64 `json:"sentBytes"`
}
