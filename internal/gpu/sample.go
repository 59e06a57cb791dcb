package gpu

import "github.com/NVIDIA/go-nvml/pkg/nvml"

// Sample is what a GPU was doing at one moment. What the driver does not tell
// is -1: MIG instances have no utilization, power, energy or temperature of their own.
// Counts are since the driver was loaded, or the device was reset.
type Sample struct {
	UUID          string
	Utilization   float64 // percent of the last sampling period in which a kernel ran
	MemCopy       float64 // the same, in which its memory was read or written
	Encoder       float64 // percent
	Decoder       float64
	MemUsedBytes  int64
	MemTotalBytes int64
	PowerWatts    float64
	Celsius       float64
	EnergyJ       float64 // since the driver was loaded
	SMMHz, MemMHz float64

	Corrected, Uncorrected         int64 // memory errors
	RowsCorrected, RowsUncorrected int64 // of memory that were set aside
	RowsFailed                     int64 // 1: some could not be
	Replays                        int64 // of PCIe
	XID                            int64 // the last error number that the driver reported since this program began; 0: none
	XIDs                           int64 // how many it reported since then
}

// NoSample is that of a GPU of which nothing is known.
func NoSample(uuid string) Sample {
	return Sample{UUID: uuid, Utilization: -1, MemCopy: -1, Encoder: -1, Decoder: -1, MemUsedBytes: -1, MemTotalBytes: -1, PowerWatts: -1, EnergyJ: -1, Celsius: -1,
		SMMHz: -1, MemMHz: -1, Corrected: -1, Uncorrected: -1, RowsCorrected: -1, RowsUncorrected: -1, RowsFailed: -1, Replays: -1}
}

// sample reads one GPU; handle is nil when there is none to be had.
func sample(uuid string, handle nvml.Device) Sample {
	s := NoSample(uuid)
	if handle == nil {
		return s
	}
	if u, ret := handle.GetUtilizationRates(); ret == nvml.SUCCESS {
		s.Utilization, s.MemCopy = float64(u.Gpu), float64(u.Memory)
	}
	if m, ret := handle.GetMemoryInfo(); ret == nvml.SUCCESS {
		s.MemUsedBytes, s.MemTotalBytes = int64(m.Used), int64(m.Total)
	}
	into[uint32](&s.PowerWatts, 1000)(handle.GetPowerUsage())
	into[uint32](&s.Celsius, 1)(handle.GetTemperature(nvml.TEMPERATURE_GPU))
	into[uint64](&s.EnergyJ, 1000)(handle.GetTotalEnergyConsumption())
	into[uint32](&s.SMMHz, 1)(handle.GetClockInfo(nvml.CLOCK_SM))
	into[uint32](&s.MemMHz, 1)(handle.GetClockInfo(nvml.CLOCK_MEM))
	into[uint64](&s.Corrected, 1)(handle.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_CORRECTED, nvml.VOLATILE_ECC))
	into[uint64](&s.Uncorrected, 1)(handle.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC))
	into[int](&s.Replays, 1)(handle.GetPcieReplayCounter())
	if u, _, ret := handle.GetEncoderUtilization(); ret == nvml.SUCCESS {
		s.Encoder = float64(u)
	}
	if u, _, ret := handle.GetDecoderUtilization(); ret == nvml.SUCCESS {
		s.Decoder = float64(u)
	}
	if c, u, _, failed, ret := handle.GetRemappedRows(); ret == nvml.SUCCESS {
		s.RowsCorrected, s.RowsUncorrected, s.RowsFailed = int64(c), int64(u), 0
		if failed {
			s.RowsFailed = 1
		}
	}
	return s
}

// into takes what the driver answers, in parts of a unit, where it does.
func into[N uint32 | uint64 | int, T int64 | float64](to *T, parts T) func(N, nvml.Return) {
	return func(n N, ret nvml.Return) {
		if ret == nvml.SUCCESS {
			*to = T(n) / parts
		}
	}
}
