package devices

import (
	"context"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"

	"gbatch/cgroups"
	"gbatch/internal/gpu"
	"gbatch/internal/job"
	"gbatch/internal/noded/config"
	"gbatch/internal/noded/reason"
)

// nvidia is what the driver, or a simulation, says of the node's GPUs.
type nvidia struct{ node *gpu.Node }

var _ Devices = nvidia{}

// Setup is what the configuration says of the node's GPUs. Each line of the
// error begins with the key of the configuration that is wrong.
func Setup(c *config.Config) (gpu.Config, error) {
	s, err := c.GPUs()
	return gpu.Config{
		Simulate: s.Simulate, NodeName: c.Name, Limits: s.Limits,
		Injector: gpu.InjectorConfig{Injection: s.Injection, HookDir: filepath.Join(c.StateDir, "hook")},
	}, err
}

// Open finds the node's GPUs. With an error there are none to give, and
// what runs here can still be looked after.
func Open(cfg *config.Config, boot string, nodes []cgroups.Node, log *slog.Logger) (Devices, error) {
	c, err := Setup(cfg)
	if err != nil {
		panic(err) // the configuration was checked
	}
	for _, n := range nodes {
		c.NUMANodes = append(c.NUMANodes, n.ID)
	}
	c.Log = log
	c.Memory = gpu.Memory{File: filepath.Join(cfg.StateDir, "gpus.json"), Boot: boot}
	node, err := gpu.Open(c)
	if err != nil {
		return none{}, err
	}
	if inv := node.Inventory(); len(inv.GPUs) > 0 {
		log.Info("GPUs found", "count", len(inv.GPUs), "model", inv.GPUs[0].Model, "driver", inv.Driver, "simulated", inv.Simulated)
	}
	return nvidia{node}, nil
}

func (d nvidia) Inventory() Inventory {
	inv := d.node.Inventory()
	out := Inventory{CUDA: inv.CUDA, Driver: inv.Driver, Simulated: inv.Simulated}
	for _, g := range inv.GPUs {
		out.GPUs = append(out.GPUs, g.GPU)
	}
	return out
}

func (d nvidia) Near(uuids []string) []int {
	gpus, _ := d.node.Find(uuids)
	var nodes []int
	for _, g := range gpus {
		if g.NUMA >= 0 {
			nodes = append(nodes, g.NUMA)
		}
	}
	return nodes
}

func (d nvidia) Indexes(uuids []string) []int {
	gpus, _ := d.node.Find(uuids)
	var list []int
	for _, id := range uuids {
		for _, g := range gpus {
			if g.UUID == id {
				list = append(list, g.Index)
			}
		}
	}
	return list
}

func (d nvidia) Edit(spec *specs.Spec, uuids []string) error {
	if err := d.node.Edits(spec, uuids); err != nil {
		return reason.Because(job.GPUError, err)
	}
	return nil
}

func (d nvidia) Lost(uuids []string) string {
	if f := d.node.Fault(uuids); f.Lost {
		return f.Text
	}
	return ""
}

func (d nvidia) Watch(ctx context.Context, changed func()) { d.node.Watch(ctx, LookEvery, changed) }
func (d nvidia) Refresh(ctx context.Context)               { d.node.Refresh(ctx) }
func (d nvidia) Close() error                              { return d.node.Close() }

// LookEvery is how often the GPUs are looked at; it costs about a millisecond
// for eight of them.
const LookEvery = 5 * time.Second
