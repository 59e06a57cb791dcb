package gpu

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"gbatch/internal/gpu/setup"
)

// What a device says over time, a reading every ten seconds, and what is made of each.
func TestJudge(t *testing.T) {
	slow, whole := &link{8, 16, 4, 4}, &link{16, 16, 4, 4}
	old := &link{16, 16, 1, 4}
	const thermal, power = nvml.ClocksThrottleReasonHwThermalSlowdown, nvml.ClocksThrottleReasonHwPowerBrakeSlowdown
	type reading struct {
		c    condition
		want string // part of the text; empty: well
	}
	tests := map[string]struct {
		limits   setup.Limits
		most     int
		readings []reading
	}{
		"nothing told":             {setup.Limits{}, 0, []reading{{condition{Links: -1}, ""}}},
		"a link goes and comes":    {setup.Limits{}, 12, []reading{{condition{Links: 12}, ""}, {condition{Links: 11}, "1 of its 12 NVLinks are down"}, {condition{Links: 12}, ""}}},
		"fewer than others":        {setup.Limits{}, 18, []reading{{condition{Links: 17}, "1 of its 18 NVLinks"}}},
		"not connected":            {setup.Limits{}, 18, []reading{{condition{Links: 0}, ""}}},
		"all links go":             {setup.Limits{}, 18, []reading{{condition{Links: 18}, ""}, {condition{Links: 0}, "18 of its 18 NVLinks"}}},
		"not connected, but asked": {setup.Limits{NVLinks: 4}, 0, []reading{{condition{Links: 0}, "4 of its 4 NVLinks"}}},
		"more than asked":          {setup.Limits{NVLinks: 4}, 18, []reading{{condition{Links: 12}, ""}}},
		"slow while it works": {setup.Limits{}, 0, []reading{{condition{Links: -1, PCIe: slow, Busy: true}, "generation 4 with 8 lanes, and could be generation 4 with 16"},
			{condition{Links: -1, PCIe: slow}, "8 lanes"}, {condition{Links: -1, PCIe: whole}, ""}, {condition{Links: -1, PCIe: slow}, ""}}},
		"saves power":        {setup.Limits{}, 0, []reading{{condition{Links: -1, PCIe: old}, ""}, {condition{Links: -1, PCIe: whole, Busy: true}, ""}}},
		"old while it works": {setup.Limits{}, 0, []reading{{condition{Links: -1, PCIe: old, Busy: true}, "generation 1"}}},
		"slowed for long": {setup.Limits{}, 0, []reading{{condition{Links: -1, Throttled: thermal}, ""}, {condition{Links: -1, Throttled: power}, ""}, {condition{Links: -1, Throttled: thermal}, ""},
			{condition{Links: -1, Throttled: power}, "slowed it down for longer than 30s (it lacks power)"}, {condition{Links: -1}, ""}}},
		"slowed at times": {setup.Limits{}, 0, []reading{{condition{Links: -1, Throttled: thermal}, ""}, {condition{Links: -1}, ""}, {condition{Links: -1, Throttled: thermal}, ""}, {condition{Links: -1, Throttled: thermal}, ""}, {condition{Links: -1}, ""}}},
		"slowed for less": {setup.Limits{Throttled: 10 * time.Second}, 0, []reading{{condition{Links: -1, Throttled: thermal}, ""}, {condition{Links: -1, Throttled: thermal}, "longer than 10s (it is too hot)"}}},
		"waits for reset": {setup.Limits{}, 0, []reading{{condition{Links: -1, Pending: true}, "waits to be set aside"}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			k, now := &course{}, time.Unix(0, 0)
			for i, r := range tc.readings {
				got := k.judge(r.c, tc.limits, tc.most, now)
				if (got.Text == "") != (r.want == "") || !strings.Contains(got.Text, r.want) || got.Lost {
					t.Errorf("reading %d: %+v, want %q", i, got, r.want)
				}
				now = now.Add(10 * time.Second)
			}
		})
	}
}

// A device with a fault of its links or memory takes no jobs, and none until it has
// been well for a while. Those beside it do.
func TestConditions(t *testing.T) {
	b := newBench(t, "h100:3")
	d := b.lib.at(1)
	up := d.GetNvLinkStateFunc
	d.GetNvLinkStateFunc = func(i int) (nvml.EnableState, nvml.Return) {
		if i == 7 {
			return nvml.FEATURE_DISABLED, nvml.SUCCESS
		}
		return up(i)
	}
	b.poll()
	b.want("", "1 of its 18 NVLinks are down", "")
	d.GetNvLinkStateFunc = up
	b.now = b.now.Add(wellFor - time.Second)
	b.poll()
	b.want("", "until a moment ago: 1 of its 18", "")
	b.now = b.now.Add(time.Second)
	b.poll()
	b.want("", "", "")
	b.lib.at(0).GetRemappedRowsFunc = func() (int, int, bool, bool, nvml.Return) { return 1, 0, true, false, nvml.SUCCESS }
	b.lib.at(2).GetCurrPcieLinkWidthFunc = func() (int, nvml.Return) { return 4, nvml.SUCCESS }
	b.lib.at(2).GetUtilizationRatesFunc = func() (nvml.Utilization, nvml.Return) { return nvml.Utilization{Gpu: 90}, nvml.SUCCESS }
	b.poll()
	b.want("waits to be set aside", "", "generation 5 with 4 lanes")
	b.limits = setup.Limits{SkipNVLink: true, SkipPCIe: true, SkipThrottle: true, SkipPages: true}
	b.now = b.now.Add(2 * wellFor)
	b.poll()
	b.want("", "", "")
}

// What the driver reports once outlives the program, until the GPU has begun anew or
// the machine was booted.
func TestFaultsAreRemembered(t *testing.T) {
	file := filepath.Join(t.TempDir(), "gpus.json")
	b := newBench(t, "h100:2")
	b.memory = Memory{File: file, Boot: "b1"}
	joules := func(n uint64) {
		b.lib.at(1).GetTotalEnergyConsumptionFunc = func() (uint64, nvml.Return) { return n, nvml.SUCCESS }
	}
	joules(5000)
	b.xid(1, 62)
	b.poll()
	b.want("", "microcontroller halt (XID 62)")
	again := func(boot string) {
		t.Helper()
		m, err := newMonitor(b.lib, setup.Limits{}, Memory{File: file, Boot: boot}, nil)
		if err != nil {
			t.Fatal(err)
		}
		b.monitor = m
	}
	joules(6000)
	again("b1")
	b.want("", "XID 62")
	if !b.Fault([]string{b.lib.at(1).UUID}).Lost {
		t.Error("work on it may go on")
	}
	again("b2")
	b.want("", "")
	again("b1")
	b.want("", "XID 62")
	joules(100) // it was reset
	again("b1")
	b.want("", "")
	joules(9000) // and has worked since
	again("b1")
	b.want("", "")
}
