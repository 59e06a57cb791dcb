package devices

import (
	"context"
	"fmt"
	"math"

	"github.com/opencontainers/runtime-spec/specs-go"

	"gbatch/internal/api"
	"gbatch/internal/node"
)

// Devices is what a node knows of its accelerators and how a container gets
// them. It is the one place where GPUs come in; methods are called from
// several goroutines and must be quick.
type Devices interface {
	// Inventory lists them as they are now: an unhealthy one says why.
	Inventory() Inventory
	// Near returns the NUMA nodes of the given GPUs.
	Near(uuids []string) []int
	// Indexes returns the node's numbers of the given GPUs, in their order.
	Indexes(uuids []string) []int
	// Edit gives the container exactly these GPUs, before it is prepared. It
	// is called for containers without any too.
	Edit(spec *specs.Spec, uuids []string) error
	// Lost says why work on any of these GPUs cannot go on; empty: it can.
	Lost(uuids []string) string
	// Samples says what they were doing when they were looked at last.
	Samples() []api.GPUSample
	// Readings says all that is known of each, for metrics.
	Readings() []Reading
	// Watch looks at them until ctx ends, and calls changed when they are not
	// as they were.
	Watch(ctx context.Context, changed func())
	// Refresh looks at them now. It may take as long as ctx.
	Refresh(ctx context.Context)
	// Close lets go of them. Nothing is called after it.
	Close() error
}

// Inventory is the accelerators' part of a node's inventory.
type Inventory struct {
	GPUs      []node.GPU
	CUDA      int // major*100 + minor of the driver
	Driver    string
	Simulated bool
}

// none is a node without accelerators.
type none struct{}

var _ Devices = none{}

func (none) Inventory() Inventory          { return Inventory{} }
func (none) Near([]string) []int           { return nil }
func (none) Indexes([]string) []int        { return nil }
func (none) Lost([]string) string          { return "" }
func (none) Samples() []api.GPUSample      { return nil }
func (none) Readings() []Reading           { return nil }
func (none) Watch(context.Context, func()) {}
func (none) Refresh(context.Context)       {}
func (none) Close() error                  { return nil }

func (none) Edit(_ *specs.Spec, uuids []string) error {
	if len(uuids) > 0 {
		return fmt.Errorf("give GPU %s: this node has no GPUs", uuids[0])
	}
	return nil
}

// Rlimits lift what GPU libraries run into: memory that devices write to must
// be locked. The shim lowers this to what the host allows.
func Rlimits(gpus bool) []specs.POSIXRlimit {
	if !gpus {
		return nil
	}
	return []specs.POSIXRlimit{{Type: "RLIMIT_MEMLOCK", Hard: math.MaxUint64, Soft: math.MaxUint64}}
}
