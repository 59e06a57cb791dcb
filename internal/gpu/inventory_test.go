package gpu

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"
	"github.com/google/go-cmp/cmp"

	"gbatch/internal/gpu/setup"
)

var rewrite = flag.Bool("rewrite", false, "write golden files anew")

// fake makes a machine of the model in spec whose GPUs tests may spoil.
func fake(t testing.TB, spec string) *simulated {
	t.Helper()
	s, err := setup.ParseSimulation(spec)
	if err != nil {
		t.Fatal(err)
	}
	return simulate(s, "n1", []int{0, 1}).(*simulated)
}

func (s *simulated) at(i int) *server.Device { return s.Devices[i].(*server.Device) }

func discover(t testing.TB, lib nvml.Interface) inventory {
	t.Helper()
	inv, _, err := newReader(lib).discover()
	if err != nil {
		t.Fatal(err)
	}
	return inv
}

func golden(t *testing.T, name string, v any) {
	t.Helper()
	got, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name+".json")
	if *rewrite {
		if err := os.WriteFile(path, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.TrimSpace(string(want)), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// Each machine that can be pretended, as it is offered to the scheduler. Two
// GPUs of each keep the files readable; eight are the same with more links.
func TestInventoryOfMachines(t *testing.T) {
	for _, model := range []string{"a100", "h100", "h200", "b200"} {
		t.Run(model, func(t *testing.T) { golden(t, model, discover(t, fake(t, model+":2"))) })
	}
	t.Run("mixed", func(t *testing.T) { golden(t, "mixed", discover(t, fake(t, "h100:1,a100:1"))) })
}

func TestInventoryOrder(t *testing.T) {
	lib := fake(t, "h100:8")
	lib.at(0).PciBusID = "0000:ff:00.0"
	inv := discover(t, lib)
	if inv.GPUs[7].UUID != lib.at(0).UUID || inv.GPUs[7].Index != 7 || inv.GPUs[0].UUID != lib.at(1).UUID {
		t.Errorf("not in the order of PCI addresses: %+v", inv.GPUs)
	}
	if n := len(inv.GPUs[3].Links); n != 7 {
		t.Errorf("links of one of eight: %d", n)
	}
}

func TestNoLinks(t *testing.T) {
	lib := fake(t, "a100:2")
	lib.at(1).GetP2PStatusFunc = func(nvml.Device, nvml.GpuP2PCapsIndex) (nvml.GpuP2PStatus, nvml.Return) {
		return nvml.P2P_STATUS_NOT_SUPPORTED, nvml.SUCCESS
	}
	if inv := discover(t, lib); inv.GPUs[0].Links != nil || inv.GPUs[1].Links != nil {
		t.Errorf("links: %+v", inv.GPUs)
	}
}

// One GPU that is broken hides no other, however it is broken.
func TestInventoryBroken(t *testing.T) {
	cases := map[string]struct {
		spoil func(*simulated)
		uuid  string // empty: the GPU's own
		want  string
	}{
		"handle": {func(s *simulated) {
			next := s.DeviceGetHandleByIndexFunc
			s.DeviceGetHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
				if i == 1 {
					return nil, nvml.ERROR_GPU_IS_LOST
				}
				return next(i)
			}
		}, "unreadable-1", "it fell off the bus"},
		"uuid": {func(s *simulated) {
			s.at(1).GetUUIDFunc = func() (string, nvml.Return) { return "", nvml.ERROR_UNKNOWN }
		}, "unreadable-1", "the driver says"},
		"name": {func(s *simulated) {
			s.at(1).GetNameFunc = func() (string, nvml.Return) { return "", nvml.ERROR_RESET_REQUIRED }
		}, "", "its model cannot be read: it has to be reset"},
		"memory": {func(s *simulated) {
			s.at(1).GetMemoryInfoFunc = func() (nvml.Memory, nvml.Return) { return nvml.Memory{}, nvml.ERROR_UNKNOWN }
		}, "", "its memory cannot be read"},
		"pci": {func(s *simulated) {
			s.at(1).GetPciInfoFunc = func() (nvml.PciInfo, nvml.Return) { return nvml.PciInfo{}, nvml.ERROR_UNKNOWN }
		}, "", "its PCI address cannot be read"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			lib := fake(t, "h100:3")
			uuid := tc.uuid
			if uuid == "" {
				uuid = lib.at(1).UUID
			}
			tc.spoil(lib)
			inv := discover(t, lib)
			if len(inv.GPUs) != 3 {
				t.Fatalf("GPUs: %+v", inv.GPUs)
			}
			for _, g := range inv.GPUs {
				switch {
				case g.UUID == uuid && !strings.Contains(g.Unhealthy, tc.want):
					t.Errorf("unhealthy: %q, want %q in it", g.Unhealthy, tc.want)
				case g.UUID != uuid && (g.Unhealthy != "" || len(g.Links) != 1):
					t.Errorf("another GPU suffers: %+v", g)
				}
			}
		})
	}
}

// cut turns MIG on and makes instances.
func cut(d *server.Device, uuids ...string) {
	d.MigMode = nvml.DEVICE_MIG_ENABLE
	d.GetMaxMigDeviceCountFunc = func() (int, nvml.Return) { return 7, nvml.SUCCESS }
	d.GetMigDeviceHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
		if i%2 != 0 || i/2 >= len(uuids) {
			return nil, nvml.ERROR_NOT_FOUND // places are not filled without gaps
		}
		return instance(d, uuids[i/2], i), nvml.SUCCESS
	}
}

func instance(d *server.Device, uuid string, i int) *mock.Device {
	return &mock.Device{
		GetUUIDFunc:              func() (string, nvml.Return) { return uuid, nvml.SUCCESS },
		GetNameFunc:              func() (string, nvml.Return) { return d.Config.Name + " MIG 1g.10gb", nvml.SUCCESS },
		GetMemoryInfoFunc:        func() (nvml.Memory, nvml.Return) { return nvml.Memory{Total: 10 << 30, Used: 1 << 30}, nvml.SUCCESS },
		GetGpuInstanceIdFunc:     func() (int, nvml.Return) { return 7 + i, nvml.SUCCESS },
		GetComputeInstanceIdFunc: func() (int, nvml.Return) { return 0, nvml.SUCCESS },
		GetUtilizationRatesFunc: func() (nvml.Utilization, nvml.Return) {
			return nvml.Utilization{}, nvml.ERROR_NOT_SUPPORTED
		},
		GetPowerUsageFunc: func() (uint32, nvml.Return) { return 0, nvml.ERROR_NOT_SUPPORTED },
		GetTotalEnergyConsumptionFunc: func() (uint64, nvml.Return) {
			return 0, nvml.ERROR_NOT_SUPPORTED
		},
		GetTemperatureFunc: func(nvml.TemperatureSensors) (uint32, nvml.Return) { return 0, nvml.ERROR_NOT_SUPPORTED },

		GetClockInfoFunc:          func(nvml.ClockType) (uint32, nvml.Return) { return 0, nvml.ERROR_NOT_SUPPORTED },
		GetEncoderUtilizationFunc: func() (uint32, uint32, nvml.Return) { return 0, 0, nvml.ERROR_NOT_SUPPORTED },
		GetDecoderUtilizationFunc: func() (uint32, uint32, nvml.Return) { return 0, 0, nvml.ERROR_NOT_SUPPORTED },
		GetPcieReplayCounterFunc:  func() (int, nvml.Return) { return 0, nvml.ERROR_NOT_SUPPORTED },
		GetTotalEccErrorsFunc: func(nvml.MemoryErrorType, nvml.EccCounterType) (uint64, nvml.Return) {
			return 0, nvml.ERROR_NOT_SUPPORTED
		},
		GetRemappedRowsFunc: func() (int, int, bool, bool, nvml.Return) { return 0, 0, false, false, nvml.ERROR_NOT_SUPPORTED },
	}
}

func TestInventoryMIG(t *testing.T) {
	lib := fake(t, "h100:3")
	cut(lib.at(0), "MIG-a", "MIG-b")
	cut(lib.at(2)) // on, but nobody has made instances
	golden(t, "mig", discover(t, lib))
}

func TestSimulation(t *testing.T) {
	if diff := cmp.Diff(setup.Models, slices.Sorted(maps.Keys(simulatedModels))); diff != "" {
		t.Errorf("models that a configuration may name and those that are there (-want +got):\n%s", diff)
	}
	uuids := func(s, node string) (list []string) {
		sim, err := setup.ParseSimulation(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range discover(t, simulate(sim, node, nil)).GPUs {
			list = append(list, g.UUID)
		}
		return list
	}
	first := uuids("h100:4", "n1")
	if diff := cmp.Diff(first, uuids("H100:4", "n1")); diff != "" {
		t.Errorf("a restart changes UUIDs (-before +after):\n%s", diff)
	}
	if more := uuids("h100:8", "n1"); !cmp.Equal(first, more[:4]) {
		t.Error("more GPUs change the UUIDs of the others")
	}
	if uuids("h100:4", "n2")[0] == first[0] {
		t.Error("two nodes have the same GPU")
	}
}

func TestLoad(t *testing.T) {
	withGPU := fstest.MapFS{
		"bus/pci/devices/0000:00:02.0/vendor": {Data: []byte("0x8086\n")}, "bus/pci/devices/0000:00:02.0/class": {Data: []byte("0x030000\n")},
		"bus/pci/devices/0000:1b:00.0/vendor": {Data: []byte("0x10de\n")}, "bus/pci/devices/0000:1b:00.0/class": {Data: []byte("0x030200\n")},
	}
	cases := map[string]struct {
		ret  nvml.Return
		sys  fstest.MapFS
		lib  bool
		want string
	}{
		"works":    {nvml.SUCCESS, withGPU, true, ""},
		"nodriver": {nvml.ERROR_LIBRARY_NOT_FOUND, nil, false, ""},
		"noGPU":    {nvml.ERROR_DRIVER_NOT_LOADED, nil, false, ""},
		"unloaded": {nvml.ERROR_DRIVER_NOT_LOADED, withGPU, false, "the machine has a GPU at 0000:1b:00.0 but the kernel driver is not loaded"},
		"mismatch": {nvml.ERROR_LIB_RM_VERSION_MISMATCH, withGPU, false, "the driver was upgraded"},
		"unknown":  {nvml.ERROR_UNKNOWN, withGPU, false, "nvidia-smi"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			fake := fake(t, "h100:1")
			fake.InitFunc = func() nvml.Return { return tc.ret }
			lib, err := load(fake, tc.sys)
			if (lib != nil) != tc.lib {
				t.Errorf("library: %v", lib)
			}
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("error: %v, want %q in it", err, tc.want)
			}
		})
	}
}

// The real library is not there in most places where tests run.
func TestLoadHere(t *testing.T) {
	lib, err := load(nvml.New(), os.DirFS("/sys"))
	if err != nil {
		t.Fatal(err)
	}
	if lib == nil {
		t.Skip("SKIPPED, this machine has no NVIDIA driver: it counts as a node without GPUs")
	}
	defer lib.Shutdown()
	t.Logf("%+v", discover(t, lib))
}

func TestNUMA(t *testing.T) {
	sys := fstest.MapFS{
		"bus/pci/devices/0000:1b:00.0/numa_node": {Data: []byte("1\n")},
		"bus/pci/devices/0000:1c:00.0/numa_node": {Data: []byte("-1\n")},
	}
	for pci, want := range map[string]int{"0000:1b:00.0": 1, "0000:1c:00.0": -1, "0000:1d:00.0": -1} {
		if got := sysfsNUMA(sys, pci); got != want {
			t.Errorf("%s: node %d, want %d", pci, got, want)
		}
	}
}
