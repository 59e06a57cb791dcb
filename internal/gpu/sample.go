package gpu

import "github.com/NVIDIA/go-nvml/pkg/nvml"

// Sample is what a GPU was doing at one moment. What the driver does not tell
// is -1: MIG instances have no utilization, power, energy or temperature of their own.
type Sample struct {
	UUID          string
	Utilization   float64 // percent of the last sampling period in which a kernel ran
	MemUsedBytes  int64
	MemTotalBytes int64
	PowerWatts    float64
	Celsius       float64
	EnergyJ       float64 // since the driver was loaded
}

// sample reads one GPU; handle is nil when there is none to be had.
func sample(uuid string, handle nvml.Device) Sample {
	s := Sample{UUID: uuid, Utilization: -1, MemUsedBytes: -1, MemTotalBytes: -1, PowerWatts: -1, Celsius: -1, EnergyJ: -1}
	if handle == nil {
		return s
	}
	if u, ret := handle.GetUtilizationRates(); ret == nvml.SUCCESS {
		s.Utilization = float64(u.Gpu)
	}
	if m, ret := handle.GetMemoryInfo(); ret == nvml.SUCCESS {
		s.MemUsedBytes, s.MemTotalBytes = int64(m.Used), int64(m.Total)
	}
	if mw, ret := handle.GetPowerUsage(); ret == nvml.SUCCESS {
		s.PowerWatts = float64(mw) / 1000
	}
	if t, ret := handle.GetTemperature(nvml.TEMPERATURE_GPU); ret == nvml.SUCCESS {
		s.Celsius = float64(t)
	}
	if mj, ret := handle.GetTotalEnergyConsumption(); ret == nvml.SUCCESS {
		s.EnergyJ = float64(mj) / 1000
	}
	return s
}
