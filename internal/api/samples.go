package api

// GPUSample is what one GPU was doing when its node looked last. What the
// driver does not tell, as of MIG instances, is absent.
type GPUSample struct {
	UUID        string   `json:"uuid"`
	Utilization *float64 `json:"utilization,omitempty"` // percent of the last period in which a kernel ran
	MemUsed     *int64   `json:"memUsedBytes,omitempty"`
	EnergyJ     *float64 `json:"energyJ,omitempty"` // used since the driver was loaded
}
