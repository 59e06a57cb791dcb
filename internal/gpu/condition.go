package gpu

import (
	"cmp"
	"fmt"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"gbatch/internal/gpu/setup"
)

// link is what a device says of its way to the machine.
type link struct{ width, maxWidth, gen, maxGen int }

func (l link) full() bool { return l.width >= l.maxWidth && l.gen >= l.maxGen }

// condition is what a device says of itself that makes it slow or is about to break
// it, and that a reading alone does not decide on.
type condition struct {
	Links     int // NVLinks that are up; -1: it does not tell
	PCIe      *link
	Busy      bool   // it works, and so has no reason to save power on its link
	Throttled uint64 // why its hardware slows it down now, as the driver's bits
	Pending   bool   // bad memory waits for a reset to be set aside
}

// hardwareSlows are the reasons for which the hardware halves the clocks or more: it
// is hot, or lacks power.
const hardwareSlows = nvml.ClocksThrottleReasonHwSlowdown | nvml.ClocksThrottleReasonHwThermalSlowdown | nvml.ClocksThrottleReasonHwPowerBrakeSlowdown

// readCondition asks one device. What it does not support is as if all was well.
func readCondition(handle nvml.Device, l setup.Limits) condition {
	c := condition{Links: -1}
	if !l.SkipNVLink {
		c.Links = activeLinks(handle)
	}
	if !l.SkipPCIe {
		c.PCIe = pcieLink(handle)
		state, ret := handle.GetPerformanceState()
		use, useRet := handle.GetUtilizationRates()
		c.Busy = ret == nvml.SUCCESS && useRet == nvml.SUCCESS && state == nvml.PSTATE_0 && use.Gpu > 0
	}
	if !l.SkipThrottle {
		if bits, ret := handle.GetCurrentClocksThrottleReasons(); ret == nvml.SUCCESS {
			c.Throttled = bits & hardwareSlows
		}
	}
	if !l.SkipPages {
		if state, ret := handle.GetRetiredPagesPendingStatus(); ret == nvml.SUCCESS && state == nvml.FEATURE_ENABLED {
			c.Pending = true
		}
		if _, _, pending, _, ret := handle.GetRemappedRows(); ret == nvml.SUCCESS && pending {
			c.Pending = true
		}
	}
	return c
}

func activeLinks(handle nvml.Device) int {
	n := -1
	for i := range nvml.NVLINK_MAX_LINKS {
		state, ret := handle.GetNvLinkState(i)
		if ret == nvml.ERROR_INVALID_ARGUMENT {
			break // it has no more
		}
		if ret != nvml.SUCCESS {
			continue
		}
		n = max(n, 0)
		if state == nvml.FEATURE_ENABLED {
			n++
		}
	}
	return n
}

// pcieLink is nil for a device that does not tell all of it.
func pcieLink(handle nvml.Device) *link {
	var l link
	for _, ask := range []struct {
		to  *int
		how func() (int, nvml.Return)
	}{
		{&l.width, handle.GetCurrPcieLinkWidth}, {&l.maxWidth, handle.GetMaxPcieLinkWidth},
		{&l.gen, handle.GetCurrPcieLinkGeneration}, {&l.maxGen, handle.GetMaxPcieLinkGeneration},
	} {
		n, ret := ask.how()
		if ret != nvml.SUCCESS || n == 0 {
			return nil
		}
		*ask.to = n
	}
	return &l
}

// course is what is remembered of a device between readings.
type course struct {
	links    int // most NVLinks that it had
	slowPCIe bool
	slow     time.Time // since when its hardware slows it down; zero: it does not
	bad      time.Time // when it was last seen with a fault that may go by itself
	was      string    // that fault
}

// judge says what is wrong with a device, and remembers what has to be. most is how
// many NVLinks the device of its model has that has most.
func (k *course) judge(c condition, l setup.Limits, most int, now time.Time) fault {
	if f := k.nvlinks(c, l, most); f.Text != "" {
		return f
	}
	if p := c.PCIe; p != nil {
		// An idle device may lower its link to save power. So it is only found slow while
		// it works, and stays so until it is seen to be whole.
		if p.full() {
			k.slowPCIe = false
		} else if c.Busy {
			k.slowPCIe = true
		}
		if k.slowPCIe {
			return fault{Text: fmt.Sprintf("its PCIe link is generation %d with %d lanes, and could be generation %d with %d: reseat it, see its riser and the BIOS", p.gen, p.width, p.maxGen, p.maxWidth)}
		}
	}
	if c.Throttled == 0 {
		k.slow = time.Time{}
	} else if k.slow.IsZero() {
		k.slow = now
	}
	if limit := cmp.Or(l.Throttled, 30*time.Second); !k.slow.IsZero() && now.Sub(k.slow) >= limit {
		return fault{Text: fmt.Sprintf("its hardware has slowed it down for longer than %s (%s): see to its cooling and power", limit, slowWords(c.Throttled))}
	}
	if c.Pending {
		return fault{Text: "bad memory waits to be set aside: when its jobs have ended stop gnoded, run nvidia-smi --gpu-reset, start gnoded"}
	}
	return fault{}
}

// nvlinks judges the NVLinks. Machines connect some of their GPUs only: one that never
// had a link is taken as it is, unless it is said how many there are.
func (k *course) nvlinks(c condition, l setup.Limits, most int) fault {
	if c.Links < 0 {
		return fault{}
	}
	k.links = max(k.links, c.Links)
	want := l.NVLinks
	if want == 0 && k.links > 0 {
		want = max(k.links, most)
	}
	if c.Links >= want {
		return fault{}
	}
	return fault{Text: fmt.Sprintf("%d of its %d NVLinks are down: see nvidia-smi nvlink --status and dmesg, reseat or replace it", want-c.Links, want)}
}

func slowWords(bits uint64) string {
	switch {
	case bits&nvml.ClocksThrottleReasonHwThermalSlowdown != 0:
		return "it is too hot"
	case bits&nvml.ClocksThrottleReasonHwPowerBrakeSlowdown != 0:
		return "it lacks power"
	}
	return "it is too hot or lacks power"
}
