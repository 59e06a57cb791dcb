package devices

import (
	"math"

	"gbatch/internal/api"
	"gbatch/internal/gpu"
)

func (d nvidia) Samples() []api.GPUSample { return samplesToAPI(d.node.Samples()) }

func samplesToAPI(list []gpu.Sample) []api.GPUSample {
	var out []api.GPUSample
	for _, s := range list {
		w := api.GPUSample{UUID: s.UUID}
		if s.Utilization >= 0 {
			w.Utilization = &s.Utilization
		}
		if s.MemUsedBytes >= 0 {
			w.MemUsed = &s.MemUsedBytes
		}
		if s.Celsius >= 0 {
			w.Celsius = &s.Celsius
		}
		if s.EnergyJ > 0 {
			w.EnergyJ = &s.EnergyJ
		}
		if w.Utilization != nil || w.MemUsed != nil {
			out = append(out, w)
		}
	}
	return out
}

// SamplesDiffer says whether a reader would see another picture.
func SamplesDiffer(a, b []api.GPUSample) bool {
	if len(a) != len(b) {
		return true
	}
	for i := range a {
		x, y := a[i], b[i]
		if x.UUID != y.UUID || (x.Utilization == nil) != (y.Utilization == nil) || (x.MemUsed == nil) != (y.MemUsed == nil) {
			return true
		}
		if x.Utilization != nil && math.Abs(*x.Utilization-*y.Utilization) >= 5 {
			return true
		}
		if x.MemUsed != nil && math.Abs(float64(*x.MemUsed-*y.MemUsed)) >= 256<<20 {
			return true
		}
	}
	return false
}
