package gpu

import (
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// link notes for each whole GPU which others it reaches by NVLink, directly or
// through switches: the driver is asked for each pair, as only it knows what a
// switch connects. MIG instances reach nobody.
func (r *reader) link(devices []device) {
	for i := range devices {
		for j := range devices[:i] {
			a, b := &devices[i], &devices[j]
			if !linkable(a) || !linkable(b) {
				continue
			}
			status, ret := a.handle.GetP2PStatus(b.handle, nvml.P2P_CAPS_INDEX_NVLINK)
			if ret != nvml.SUCCESS || status != nvml.P2P_STATUS_OK {
				continue
			}
			a.gpus[0].Links = append(a.gpus[0].Links, b.uuid)
			b.gpus[0].Links = append(b.gpus[0].Links, a.uuid)
		}
	}
	for _, d := range devices {
		slices.Sort(d.gpus[0].Links)
	}
}

func linkable(d *device) bool {
	return d.handle != nil && d.gpus[0].MIG == nil && d.gpus[0].Unhealthy == ""
}
