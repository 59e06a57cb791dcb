package exporter

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"gbatch/internal/gpu"
	"gbatch/internal/metrics"
	"gbatch/internal/noded/config"
)

// The names of NVIDIA's exporter, with its labels, for dashboards that ask for
// them. What only DCGM itself can measure, as profiles of the pipes, is left
// out: run NVIDIA's exporter for that, with the jobs out of metrics.jobMap.

var dcgmLabels = []string{"gpu", "UUID", "pci_bus_id", "device", "modelName", "Hostname", "hostname", "DCGM_FI_DRIVER_VERSION", "GPU_I_ID", "hpc_job"}

func dcgmGauge(name, help string) metrics.Family {
	return metrics.Gauge("DCGM_FI_DEV_"+name, help, dcgmLabels...)
}
func dcgmCount(name, help string) metrics.Family {
	return metrics.Counter("DCGM_FI_DEV_"+name, help, dcgmLabels...)
}

// dcgm is each metric with its value; below 0, it is not known.
var dcgm = []struct {
	of    metrics.Family
	value func(gpu.Sample) float64
}{
	{dcgmGauge("SM_CLOCK", "SM clock frequency (in MHz)."), func(s gpu.Sample) float64 { return s.SMMHz }},
	{dcgmGauge("MEM_CLOCK", "Memory clock frequency (in MHz)."), func(s gpu.Sample) float64 { return s.MemMHz }},
	{dcgmGauge("GPU_TEMP", "GPU temperature (in C)."), func(s gpu.Sample) float64 { return s.Celsius }},
	{dcgmGauge("POWER_USAGE", "Power draw (in W)."), func(s gpu.Sample) float64 { return s.PowerWatts }},
	{dcgmCount("TOTAL_ENERGY_CONSUMPTION", "Energy since the driver was loaded (in mJ)."), func(s gpu.Sample) float64 { return s.EnergyJ * 1000 }},
	{dcgmCount("PCIE_REPLAY_COUNTER", "PCIe retries."), func(s gpu.Sample) float64 { return float64(s.Replays) }},
	{dcgmGauge("GPU_UTIL", "GPU utilization (in %)."), func(s gpu.Sample) float64 { return s.Utilization }},
	{dcgmGauge("MEM_COPY_UTIL", "Memory utilization (in %)."), func(s gpu.Sample) float64 { return s.MemCopy }},
	{dcgmGauge("ENC_UTIL", "Encoder utilization (in %)."), func(s gpu.Sample) float64 { return s.Encoder }},
	{dcgmGauge("DEC_UTIL", "Decoder utilization (in %)."), func(s gpu.Sample) float64 { return s.Decoder }},
	{dcgmGauge("XID_ERRORS", "Value of the last XID error."), func(s gpu.Sample) float64 { return float64(s.XID) }},
	{dcgmGauge("FB_FREE", "Framebuffer memory free (in MiB)."), framebufferFree},
	{dcgmGauge("FB_USED", "Framebuffer memory used (in MiB)."), func(s gpu.Sample) float64 { return float64(s.MemUsedBytes >> 20) }},
	{dcgmCount("ECC_SBE_VOL_TOTAL", "Corrected memory errors since the last reset."), func(s gpu.Sample) float64 { return float64(s.Corrected) }},
	{dcgmCount("ECC_DBE_VOL_TOTAL", "Uncorrected memory errors since the last reset."), func(s gpu.Sample) float64 { return float64(s.Uncorrected) }},
	{dcgmCount("UNCORRECTABLE_REMAPPED_ROWS", "Rows remapped for uncorrectable errors."), func(s gpu.Sample) float64 { return float64(s.RowsUncorrected) }},
	{dcgmCount("CORRECTABLE_REMAPPED_ROWS", "Rows remapped for correctable errors."), func(s gpu.Sample) float64 { return float64(s.RowsCorrected) }},
	{dcgmGauge("ROW_REMAP_FAILURE", "Whether remapping of rows has failed."), func(s gpu.Sample) float64 { return float64(s.RowsFailed) }},
}

func framebufferFree(s gpu.Sample) float64 {
	if s.MemTotalBytes < 0 {
		return -1
	}
	return float64((s.MemTotalBytes - s.MemUsedBytes) >> 20)
}

// dcgmCollector says nothing unless the configuration asks for it.
func (e *Exporter) dcgmCollector() *metrics.Collector {
	c := &metrics.Collector{Read: func(set *metrics.Set) {
		if slices.Contains(e.Config.Metrics.Aliases, config.DCGMAliases) {
			e.addDCGM(set)
		}
	}}
	for _, d := range dcgm {
		c.Families = append(c.Families, d.of)
	}
	return c
}

// addDCGM gives a GPU a line for each job that holds it, as the exporter does.
func (e *Exporter) addDCGM(set *metrics.Set) {
	host, _ := os.Hostname()
	list, _ := e.Containers()
	for _, g := range e.Devices.Readings() {
		jobs := jobsOn(list, g.GPU.UUID)
		if len(jobs) == 0 {
			jobs = []string{""}
		}
		instance := ""
		if g.GPU.MIG != nil {
			instance = strconv.Itoa(g.GPU.MIG.Instance)
		}
		number := strconv.Itoa(g.Device)
		for _, job := range jobs {
			for _, d := range dcgm {
				if v := d.value(g.Sample); v >= 0 {
					set.Add(d.of, v, number, g.GPU.UUID, "0000"+strings.ToUpper(g.GPU.PCI), "nvidia"+number, g.GPU.Model, host, host, g.Driver, instance, job)
				}
			}
		}
	}
}
