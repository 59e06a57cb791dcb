package noded

import (
	"fmt"

	"github.com/opencontainers/runtime-spec/specs-go"

	"gbatch/internal/api"
)

// Devices is what a node knows of its accelerators and how a container gets
// them. It is the one place where GPUs come in; methods are called from
// several goroutines and must be quick.
type Devices interface {
	// Inventory lists them as they are now: an unhealthy one says why.
	Inventory() DeviceInventory
	// Near returns the NUMA nodes of the given GPUs.
	Near(uuids []string) []int
	// Indexes returns the node's numbers of the given GPUs, in their order.
	Indexes(uuids []string) []int
	// Edit gives the container exactly these GPUs, before it is prepared.
	Edit(spec *specs.Spec, uuids []string) error
}

// DeviceInventory is the accelerators' part of a node's inventory.
type DeviceInventory struct {
	GPUs      []api.InventoryGPU
	CUDA      int // major*100 + minor of the driver
	Driver    string
	Simulated bool
}

// noDevices is a node without accelerators.
type noDevices struct{}

var _ Devices = noDevices{}

func (noDevices) Inventory() DeviceInventory { return DeviceInventory{} }
func (noDevices) Near([]string) []int        { return nil }
func (noDevices) Indexes([]string) []int     { return nil }

func (noDevices) Edit(_ *specs.Spec, uuids []string) error {
	if len(uuids) > 0 {
		return fmt.Errorf("give GPU %s: this node has no GPUs", uuids[0])
	}
	return nil
}
