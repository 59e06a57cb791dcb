package gpu

import (
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// migOn says whether a device is cut into instances now.
func migOn(handle nvml.Device) bool {
	mode, _, ret := handle.GetMigMode()
	return ret == nvml.SUCCESS && mode == nvml.DEVICE_MIG_ENABLE
}

// instances lists the MIG instances of a device. A device without any is listed
// itself: it can run nothing, and somebody has to be told.
func (r *reader) instances(handle nvml.Device, parent GPU) []GPU {
	count, ret := handle.GetMaxMigDeviceCount()
	if ret != nvml.SUCCESS {
		parent.Unhealthy = "its MIG instances cannot be read: " + faultText(ret)
		return []GPU{parent}
	}
	var list []GPU
	for i := range count {
		instance, ret := handle.GetMigDeviceHandleByIndex(i)
		if ret == nvml.ERROR_NOT_FOUND || ret == nvml.ERROR_INVALID_ARGUMENT {
			continue // an empty place
		}
		g := parent
		if ret != nvml.SUCCESS {
			g.UUID = fmt.Sprintf("%s-mig-%d", parent.UUID, i)
			g.Unhealthy = fmt.Sprintf("its MIG instance %d cannot be read: %s", i, faultText(ret))
			list = append(list, g)
			continue
		}
		if g, ok := readInstance(instance, g); ok {
			list = append(list, g)
		}
	}
	if len(list) == 0 {
		parent.Unhealthy = "MIG is on but there are no instances: create some (nvidia-smi mig -cgi PROFILE -C) or turn MIG off (nvidia-smi -mig 0)"
		return []GPU{parent}
	}
	return list
}

// readInstance fills in what differs from the device. Without a UUID an
// instance cannot be told from the others, so it is left out.
func readInstance(handle nvml.Device, g GPU) (GPU, bool) {
	mig := &mig{Parent: g.UUID}
	uuid, ret := handle.GetUUID()
	if ret != nvml.SUCCESS {
		return g, false
	}
	g.UUID, g.MIG = uuid, mig
	for _, step := range []func() nvml.Return{
		func() (ret nvml.Return) { mig.Instance, ret = handle.GetGpuInstanceId(); return ret },
		func() (ret nvml.Return) { mig.Compute, ret = handle.GetComputeInstanceId(); return ret },
		func() (ret nvml.Return) { g.Model, ret = handle.GetName(); return ret },
		func() nvml.Return {
			mem, ret := handle.GetMemoryInfo()
			g.MemBytes = int64(mem.Total)
			return ret
		},
	} {
		if ret := step(); ret != nvml.SUCCESS {
			g.Unhealthy = "it cannot be read: " + faultText(ret)
			break
		}
	}
	return g, true
}
