package gpu

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxa100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxb200"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh200"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/gpus"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"
	"github.com/google/uuid"

	"gbatch/internal/gpu/setup"
)

// simulatedModels are those of setup.Models, and the machine whose
// driver they come with.
var simulatedModels = map[string]struct {
	config  gpus.Config
	machine func(...gpus.Config) *server.Server
}{
	"a100": {gpus.A100_SXM4_40GB, dgxa100.NewWithGPUs},
	"h100": {gpus.H100_SXM5_80GB, dgxh100.NewWithGPUs},
	"h200": {gpus.H200_SXM5_141GB, dgxh200.NewWithGPUs},
	"b200": {gpus.B200_SXM5_180GB, dgxb200.NewWithGPUs},
}

// simulate returns a library with the GPUs of s, those of one model
// connected by NVLink. Their
// UUIDs depend on the node's name and their place only: they outlive a restart,
// and differ between nodes that share a machine. The GPUs are spread evenly
// over numaNodes, the machine's own, so that jobs get cores near them.
func simulate(s setup.Simulation, node string, numaNodes []int) nvml.Interface {
	configs := make([]gpus.Config, len(s))
	for i, model := range s {
		configs[i] = simulatedModels[model].config
	}
	// A machine of several models runs the driver of the first.
	machine := simulatedModels[s[0]].machine(configs...)
	for i, d := range machine.Devices {
		d := d.(*server.Device)
		id := uuid.NewSHA1(uuid.NameSpaceOID, fmt.Appendf(nil, "gbatch/%s/%d/%s", node, i, s[i]))
		d.UUID = "GPU-" + id.String()
	}
	complete(machine)
	return &simulated{Server: machine, nodes: numaNodes}
}

// simulated marks a library whose GPUs do not exist.
type simulated struct {
	*server.Server
	nodes []int
}

// numa spreads the GPUs in equal runs, as machines do.
func (s *simulated) numa(pci string) int {
	i := slices.IndexFunc(s.Devices, func(d nvml.Device) bool { return d.(*server.Device).PciBusID == pci })
	if i < 0 || len(s.nodes) == 0 {
		return -1
	}
	return s.nodes[i*len(s.nodes)/len(s.Devices)]
}

// complete gives a mocked machine the answers that the mock does not have: it
// panics on every function that nobody has set.
func complete(s *server.Server) {
	s.EventSetCreateFunc = func() (nvml.EventSet, nvml.Return) {
		return &mock.EventSet{
			WaitFunc: func(uint32) (nvml.EventData, nvml.Return) { return nvml.EventData{}, nvml.ERROR_TIMEOUT },
			FreeFunc: func() nvml.Return { return nvml.SUCCESS },
		}, nvml.SUCCESS
	}
	for i, d := range s.Devices {
		d := d.(*server.Device)
		d.PciBusID = fmt.Sprintf("0000:%02x:00.0", 0x10+i) // 00 is the host's own bridge
		d.Config.Name = strings.TrimPrefix(d.Config.Name, "Mock ")
		completeDevice(d)
	}
}

func completeDevice(d *server.Device) {
	d.GetPciInfoFunc = func() (nvml.PciInfo, nvml.Return) {
		info := nvml.PciInfo{PciDeviceId: d.Config.PciDeviceId}
		for i, c := range []byte("0000" + strings.ToUpper(d.PciBusID)) {
			info.BusId[i] = int8(c)
		}
		return info, nvml.SUCCESS
	}
	d.IsMigDeviceHandleFunc = func() (bool, nvml.Return) { return false, nvml.SUCCESS }
	d.GetMaxMigDeviceCountFunc = func() (int, nvml.Return) { return 0, nvml.SUCCESS }
	d.GetP2PStatusFunc = func(other nvml.Device, _ nvml.GpuP2PCapsIndex) (nvml.GpuP2PStatus, nvml.Return) {
		if other.(*server.Device).Config.Name != d.Config.Name {
			return nvml.P2P_STATUS_NOT_SUPPORTED, nvml.SUCCESS
		}
		return nvml.P2P_STATUS_OK, nvml.SUCCESS
	}
	d.GetSupportedEventTypesFunc = func() (uint64, nvml.Return) {
		return nvml.EventTypeXidCriticalError, nvml.SUCCESS
	}
	d.RegisterEventsFunc = func(uint64, nvml.EventSet) nvml.Return { return nvml.SUCCESS }
	d.GetTotalEccErrorsFunc = func(nvml.MemoryErrorType, nvml.EccCounterType) (uint64, nvml.Return) { return 0, nvml.SUCCESS }
	d.GetRemappedRowsFunc = func() (int, int, bool, bool, nvml.Return) { return 0, 0, false, false, nvml.SUCCESS }
	d.GetTemperatureFunc = func(nvml.TemperatureSensors) (uint32, nvml.Return) { return 30, nvml.SUCCESS }
	d.GetTemperatureThresholdFunc = func(nvml.TemperatureThresholds) (uint32, nvml.Return) { return 90, nvml.SUCCESS }
	d.GetUtilizationRatesFunc = func() (nvml.Utilization, nvml.Return) { return nvml.Utilization{}, nvml.SUCCESS }
	const milliwatts = 70_000
	d.GetPowerUsageFunc = func() (uint32, nvml.Return) { return milliwatts, nvml.SUCCESS }
	began := time.Now()
	d.GetTotalEnergyConsumptionFunc = func() (uint64, nvml.Return) {
		return uint64(milliwatts * time.Since(began).Seconds()), nvml.SUCCESS
	}
	d.GetClockInfoFunc = func(nvml.ClockType) (uint32, nvml.Return) { return 345, nvml.SUCCESS }
	d.GetEncoderUtilizationFunc = func() (uint32, uint32, nvml.Return) { return 0, 0, nvml.SUCCESS }
	d.GetDecoderUtilizationFunc = func() (uint32, uint32, nvml.Return) { return 0, 0, nvml.SUCCESS }
	d.GetNvLinkStateFunc = func(i int) (nvml.EnableState, nvml.Return) {
		if i >= 18 {
			return nvml.FEATURE_DISABLED, nvml.ERROR_INVALID_ARGUMENT
		}
		return nvml.FEATURE_ENABLED, nvml.SUCCESS
	}
	d.GetPerformanceStateFunc = func() (nvml.Pstates, nvml.Return) { return nvml.PSTATE_0, nvml.SUCCESS }
	whole := func(n int) func() (int, nvml.Return) { return func() (int, nvml.Return) { return n, nvml.SUCCESS } }
	d.GetCurrPcieLinkWidthFunc, d.GetMaxPcieLinkWidthFunc = whole(16), whole(16)
	d.GetCurrPcieLinkGenerationFunc, d.GetMaxPcieLinkGenerationFunc = whole(5), whole(5)
	d.GetCurrentClocksThrottleReasonsFunc = func() (uint64, nvml.Return) { return 0, nvml.SUCCESS }
	d.GetRetiredPagesPendingStatusFunc = func() (nvml.EnableState, nvml.Return) { return nvml.FEATURE_DISABLED, nvml.ERROR_NOT_SUPPORTED }
	d.GetPcieReplayCounterFunc = func() (int, nvml.Return) { return 0, nvml.SUCCESS }
}
