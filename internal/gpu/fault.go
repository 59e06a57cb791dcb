package gpu

import "github.com/NVIDIA/go-nvml/pkg/nvml"

// faultText says in words what an error of the library means for a GPU.
func faultText(ret nvml.Return) string {
	switch ret {
	case nvml.ERROR_GPU_IS_LOST:
		return "it fell off the bus: power-cycle the machine, and reseat or replace the GPU if that does not help"
	case nvml.ERROR_RESET_REQUIRED:
		return "it has to be reset: stop gnoded, run nvidia-smi --gpu-reset, start gnoded"
	case nvml.ERROR_INSUFFICIENT_POWER:
		return "its power cables are not connected"
	case nvml.ERROR_IRQ_ISSUE:
		return "the kernel cannot give it an interrupt"
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		return "the driver was upgraded and the old one is still loaded: reboot"
	case nvml.ERROR_DRIVER_NOT_LOADED, nvml.ERROR_UNINITIALIZED:
		return "the driver was unloaded: run modprobe nvidia and restart gnoded"
	}
	return "the driver says: " + ret.Error()
}
