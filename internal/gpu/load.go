package gpu

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// load opens and initializes the driver's library. It returns nil and no error
// on a machine without NVIDIA driver: a node for CPU jobs. An error is a driver
// that is there and does not work, in words that say what to do. The library
// stays open until its Shutdown is called.
func load(lib nvml.Interface, sys fs.FS) (nvml.Interface, error) {
	switch ret := lib.Init(); ret {
	case nvml.SUCCESS:
		if err := checkAge(lib); err != nil {
			lib.Shutdown()
			return nil, err
		}
		return lib, nil
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return nil, nil
	case nvml.ERROR_DRIVER_NOT_LOADED:
		// The library without the driver is usual in container images and on
		// login nodes of one installation for all; with a GPU it is a fault.
		if pci := nvidiaGPUs(sys); len(pci) > 0 {
			return nil, fmt.Errorf("open NVML: the machine has a GPU at %s but the kernel driver is not loaded: run modprobe nvidia, see dmesg if that fails", pci[0])
		}
		return nil, nil
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		return nil, fmt.Errorf("open NVML: the driver was upgraded and the old one is still loaded: reboot, or unload and load the nvidia modules")
	case nvml.ERROR_NO_PERMISSION:
		return nil, fmt.Errorf("open NVML: %v: run as root", ret)
	default:
		return nil, fmt.Errorf("open NVML: %v: see what nvidia-smi and dmesg say", ret)
	}
}

// nvidiaGPUs lists the PCI addresses of NVIDIA's display controllers.
func nvidiaGPUs(sys fs.FS) []string {
	const dir = "bus/pci/devices"
	entries, err := fs.ReadDir(sys, dir)
	if err != nil {
		return nil // a machine without PCI
	}
	var list []string
	for _, e := range entries {
		vendor, _ := fs.ReadFile(sys, path.Join(dir, e.Name(), "vendor"))
		class, _ := fs.ReadFile(sys, path.Join(dir, e.Name(), "class"))
		if strings.TrimSpace(string(vendor)) == "0x10de" && strings.HasPrefix(string(class), "0x03") {
			list = append(list, e.Name())
		}
	}
	return list
}

// newest are the functions that came with R450, the oldest driver that runs
// CUDA 11. Calling one that the loaded driver lacks would end the process.
var newest = []string{
	"nvmlDeviceGetMigMode", "nvmlDeviceGetMaxMigDeviceCount", "nvmlDeviceGetMigDeviceHandleByIndex",
	"nvmlDeviceIsMigDeviceHandle", "nvmlDeviceGetRemappedRows",
}

func checkAge(lib nvml.Interface) error {
	for _, symbol := range newest {
		if err := lib.Extensions().LookupSymbol(symbol); err != nil {
			version, _ := lib.SystemGetDriverVersion()
			return fmt.Errorf("open NVML: driver %s is too old, it lacks %s: install 450 or newer", version, symbol)
		}
	}
	return nil
}
