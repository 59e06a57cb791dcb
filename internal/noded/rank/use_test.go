package rank

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/node"
	"gbatch/internal/noded/devices"
)

// TestMeter: what a rank's own GPUs did from its first instruction to its end,
// over a restart of the daemon, and none of what others' did.
func TestMeter(t *testing.T) {
	inv := devices.Inventory{Simulated: true, GPUs: []node.GPU{{UUID: "a", MemBytes: 80}, {UUID: "b", MemBytes: 40}}}
	sample := func(id string, util float64, mem int64, joules float64) api.GPUSample {
		return api.GPUSample{UUID: id, Utilization: &util, MemUsed: &mem, EnergyJ: &joules}
	}
	dir, mine := t.TempDir(), []string{"a", "b"}
	m := loadMeter(dir)
	m.look(mine, []api.GPUSample{sample("a", 99, 70, 1000), sample("b", 99, 1, 50)}, inv, true) // of before
	if got := m.result(); got != nil {
		t.Errorf("without a sample: %+v", got)
	}
	m.look(mine, []api.GPUSample{sample("a", 10, 30, 1100), sample("b", 50, 20, 60), sample("c", 100, 90, 9e9)}, inv, true)
	if err := m.save(dir); err != nil {
		t.Fatal(err)
	}
	m = loadMeter(dir)
	m.look(mine, []api.GPUSample{sample("a", 30, 20, 1200), sample("b", 70, 39, 5), {UUID: "a"}}, inv, true) // b's driver was loaded anew
	m.look(mine, []api.GPUSample{sample("a", 99, 70, 1250)}, inv, false)
	want := &node.GPUUse{Utilization: 40, MaxUtilization: 70, MaxMem: 39, Mem: 40, EnergyJ: 260, Samples: 4, Simulated: true}
	if diff := cmp.Diff(want, m.result()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := m.save(dir); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, gpusDid(dir, &node.Exit{StartedMS: 1}).GPU); diff != "" {
		t.Errorf("in the rank's end (-want +got):\n%s", diff)
	}
	if gpusDid(dir, &node.Exit{}).GPU != nil {
		t.Error("what never ran has used GPUs")
	}
	if got := loadMeter(t.TempDir()).result(); got != nil {
		t.Errorf("of nothing saved: %+v", got)
	}
}
