package gpu

import (
	"fmt"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// fault is what is wrong with a GPU.
type fault struct {
	Text string // a sentence that says what to do
	// Lost says that work on the GPU cannot go on: its jobs fail through no
	// fault of theirs. Without it the GPU only takes no new jobs.
	Lost bool
}

// wellFor is how long a GPU must have been well before it takes jobs again.
const wellFor = time.Minute

// check asks one device what is wrong with it. Functions that it does not
// support tell nothing, and that is no fault.
func check(handle nvml.Device) fault {
	if f := present(handle); f.Text != "" {
		return f
	}
	return memoryErrors(handle)
}

// present asks for something that needs the device itself to answer.
func present(handle nvml.Device) fault {
	switch _, ret := handle.GetMemoryInfo(); ret {
	case nvml.ERROR_GPU_IS_LOST, nvml.ERROR_RESET_REQUIRED:
		return fault{Text: faultText(ret), Lost: true}
	case nvml.SUCCESS, nvml.ERROR_NOT_SUPPORTED:
		return fault{}
	default:
		return fault{Text: faultText(ret)}
	}
}

// memoryErrors looks for errors that were not corrected since the last reset.
func memoryErrors(handle nvml.Device) fault {
	n, ret := handle.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC)
	if ret == nvml.SUCCESS && n > 0 {
		return fault{Text: fmt.Sprintf("%d uncorrectable memory errors since its last reset: stop gnoded, run nvidia-smi --gpu-reset, start gnoded", n), Lost: true}
	}
	_, _, _, failed, ret := handle.GetRemappedRows()
	if ret == nvml.SUCCESS && failed {
		return fault{Text: "bad memory could not be set aside: replace the GPU"}
	}
	return fault{}
}

// heat looks whether the device is as hot as it slows itself down at.
func heat(handle nvml.Device) fault {
	limit, ret := handle.GetTemperatureThreshold(nvml.TEMPERATURE_THRESHOLD_SLOWDOWN)
	if ret != nvml.SUCCESS || limit == 0 {
		return fault{}
	}
	now, ret := handle.GetTemperature(nvml.TEMPERATURE_GPU)
	if ret != nvml.SUCCESS || now < limit {
		return fault{}
	}
	return fault{Text: fmt.Sprintf("it is too hot, %d °C of at most %d: see to its cooling", now, limit)}
}

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
