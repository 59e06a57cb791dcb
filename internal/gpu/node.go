// Package gpu finds a node's NVIDIA GPUs, watches their health, and gives
// containers exactly the GPUs that they were granted.
//
// [Open] makes a [Node] of the driver's management library, or of one with GPUs
// that do not exist, for trying things out; everything else treats it as any
// other. Its monitor keeps reading what there is and remembers GPUs that vanish
// and faults that the driver reports once only; its injector edits OCI specs.
//
// The package decides nothing about jobs: it says in words what is wrong with a
// GPU, and its caller chooses what follows. It knows no other vendor's devices;
// those come in by a site's own CDI files (see [InjectorConfig]).
//
// The driver's library is entered through dlopen, so that a program with this
// package starts on machines without one. A function that an old driver lacks
// ends the whole process when it is called: no function is used that came after
// the R450 driver, and older drivers are refused. The program must be linked
// with lazy binding (no -z now), or it needs the driver to start.
package gpu

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/opencontainers/runtime-spec/specs-go"

	"gbatch/internal/gpu/setup"
)

// Config is what a node is told of its GPUs. The zero value finds those of the
// driver and gives them by CDI.
type Config struct {
	// Simulate pretends these GPUs instead of looking for real ones.
	Simulate setup.Simulation
	// NodeName makes simulated UUIDs differ from those of other nodes.
	NodeName string
	// NUMANodes of the machine, which simulated GPUs are spread over.
	NUMANodes []int

	// Limits say from when on a GPU takes no jobs.
	Limits setup.Limits

	// Memory is where faults are kept over restarts.
	Memory Memory

	// Injector says how containers get GPUs; its Lib is set by Open.
	Injector InjectorConfig

	Log *slog.Logger // default slog.Default
}

// Node is a node's GPUs: what there are, how they are, and how jobs get them.
type Node struct {
	*monitor
	*injector
}

// Open finds the GPUs. A machine without NVIDIA driver is a node without GPUs;
// an error is a driver or a configuration that does not work.
func Open(cfg Config) (*Node, error) {
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	lib, err := cfg.library()
	if err != nil {
		return nil, err
	}
	if lib != nil && len(cfg.Simulate) == 0 && lib.Extensions().LookupSymbol("nvmlDeviceGetCurrentClocksThrottleReasons") != nil {
		cfg.Limits.SkipThrottle = true // a driver that has it by a newer name only: to call it would end the process
	}
	monitor, err := newMonitor(lib, cfg.Limits, cfg.Memory, cfg.Log)
	if err != nil {
		return nil, errors.Join(err, monitor.Close())
	}
	cfg.Injector.Lib = lib
	cfg.Injector.Log = cmp.Or(cfg.Injector.Log, cfg.Log)
	injector, err := newInjector(cfg.Injector)
	if err != nil {
		return nil, errors.Join(err, monitor.Close())
	}
	return &Node{monitor, injector}, nil
}

func (c *Config) library() (nvml.Interface, error) {
	if len(c.Simulate) > 0 {
		return simulate(c.Simulate, c.NodeName, c.NUMANodes), nil
	}
	return load(nvml.New(), os.DirFS("/sys"))
}

// Find returns the GPUs of the given UUIDs in order of Index.
func (n *Node) Find(uuids []string) ([]GPU, error) {
	inv := n.Inventory()
	var list []GPU
	for _, g := range inv.GPUs {
		if slices.Contains(uuids, g.UUID) {
			list = append(list, g)
		}
	}
	for _, id := range uuids {
		if !slices.ContainsFunc(list, func(g GPU) bool { return g.UUID == id }) {
			return list, fmt.Errorf("this node has no GPU %s", id)
		}
	}
	return list, nil
}

// Edits gives the container of spec exactly the GPUs with the given UUIDs. It
// must be called without any for other containers.
func (n *Node) Edits(spec *specs.Spec, uuids []string) error {
	gpus, err := n.Find(uuids)
	if err != nil {
		return err
	}
	for _, g := range gpus {
		if g.Unhealthy != "" {
			return fmt.Errorf("give GPU %s: %s", g.UUID, g.Unhealthy)
		}
	}
	return n.edit(spec, gpus)
}

// Close lets go of the driver.
func (n *Node) Close() error { return n.monitor.Close() }
