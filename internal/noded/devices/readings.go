package devices

import (
	"slices"

	"gbatch/internal/gpu"
)

// Reading is a GPU with what it was doing when it was looked at last.
type Reading struct {
	GPU       gpu.GPU
	Device    int // number of the device by PCI address: instances share that of theirs
	Sample    gpu.Sample
	Driver    string
	Simulated bool
}

// Readings are all GPUs. One that could not be read tells nothing but its health.
func (d nvidia) Readings() []Reading {
	inv, samples := d.node.Inventory(), map[string]gpu.Sample{}
	for _, s := range d.node.Samples() {
		samples[s.UUID] = s
	}
	var out []Reading
	var devices []string
	for _, g := range inv.GPUs {
		if !slices.Contains(devices, g.PCI) {
			devices = append(devices, g.PCI)
		}
		s, ok := samples[g.UUID]
		if !ok {
			s = gpu.NoSample(g.UUID)
		}
		out = append(out, Reading{g, slices.Index(devices, g.PCI), s, inv.Driver, inv.Simulated})
	}
	return out
}
