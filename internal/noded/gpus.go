package noded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"

	"gbatch/internal/gpu"
	"gbatch/internal/job"
	"gbatch/internal/node"
)

// nvidia is what the driver, or a simulation, says of the node's GPUs.
type nvidia struct{ node *gpu.Node }

var _ Devices = nvidia{}

// openDevices finds the node's GPUs. A driver that does not work makes the node
// unfit and says so, but what runs here must still be looked after: it is no
// error.
func (a *Agent) openDevices() Devices {
	c, err := a.cfg.gpuConfig()
	if err != nil {
		panic(err) // the configuration was checked
	}
	for _, n := range a.cores.topology.Nodes {
		c.NUMANodes = append(c.NUMANodes, n.ID)
	}
	c.Log = a.log
	node, err := gpu.Open(c)
	if err != nil {
		a.log.Error("open GPUs", "error", err)
		a.health.lacks("GPUs: " + err.Error())
		return noDevices{}
	}
	if inv := node.Inventory(); len(inv.GPUs) > 0 {
		a.log.Info("GPUs found", "count", len(inv.GPUs), "model", inv.GPUs[0].Model, "driver", inv.Driver, "simulated", inv.Simulated)
	}
	return nvidia{node}
}

// gpuConfig reads the gpu part of the configuration; each line of the
// error begins with the key that is wrong.
func (c *Config) gpuConfig() (gpu.Config, error) {
	sim, err := gpu.ParseSimulation(c.GPU.Simulate)
	if err != nil {
		err = fmt.Errorf("simulate: %w", err)
	}
	g := gpu.Config{
		Simulate: sim, NodeName: c.Name,
		Injector: gpu.InjectorConfig{
			Mode: gpu.Mode(c.GPU.Mode), Hook: c.GPU.Hook, Devices: c.GPU.Devices,
			HookDir: filepath.Join(c.StateDir, "hook"),
		},
	}
	return g, errors.Join(err, g.Validate())
}

func (d nvidia) Inventory() DeviceInventory {
	inv := d.node.Inventory()
	out := DeviceInventory{CUDA: inv.CUDA, Driver: inv.Driver, Simulated: inv.Simulated}
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
		return &gpuError{err}
	}
	return nil
}

func (d nvidia) Lost(uuids []string) string {
	if f := d.node.Fault(uuids); f.Lost {
		return f.Text
	}
	return ""
}

func (d nvidia) Watch(ctx context.Context, changed func()) { d.node.Watch(ctx, gpuEvery, changed) }
func (d nvidia) Refresh(ctx context.Context)               { d.node.Refresh(ctx) }
func (d nvidia) Close() error                              { return d.node.Close() }

// gpuEvery is how often the GPUs are looked at; it costs about a millisecond
// for eight of them.
const gpuEvery = 5 * time.Second

// gpuError is a start that failed by the node's GPUs; its text is for the user.
type gpuError struct{ err error }

func (e *gpuError) Error() string { return e.err.Error() }
func (e *gpuError) Unwrap() error { return e.err }

// gpuLoop tells the controller of GPUs that come, go and fail, and ends ranks
// whose GPU is lost: they may hang on it for good.
func (a *Agent) gpuLoop(ctx context.Context) {
	a.devices.Watch(ctx, func() {
		a.tell(newsNow)
		a.mu.Lock()
		defer a.mu.Unlock()
		for _, r := range a.ranks {
			if lost := a.devices.Lost(uuids(r.order.Allocation)); lost != "" {
				r.requestStop(stopRequest{
					Signal: r.stopSignal(), Grace: time.Duration(r.order.GraceMS) * time.Millisecond,
					Reason: job.GPUError, Text: lost,
				})
			}
		}
	})
}

// blameGPU makes a program's failure the node's when one of its GPUs is lost:
// the program saw that before anybody else did.
func (r *rank) blameGPU(out *node.Exit) {
	ids := uuids(r.order.Allocation)
	if len(ids) == 0 || out.Reason != job.ExitCode && out.Reason != job.Signal {
		return
	}
	ctx, cancel := context.WithTimeout(r.a.ctx, blameWait)
	defer cancel()
	r.a.devices.Refresh(ctx)
	if lost := r.a.devices.Lost(ids); lost != "" {
		out.Reason, out.Message = job.GPUError, lost+" (the program's end: "+out.Message+")"
	}
}

// blameWait bounds how long a rank's end is held up by a driver that hangs.
const blameWait = 2 * time.Second

// checkGPUs is the preflight's view.
func checkGPUs(_ context.Context, c *Config) []finding {
	cfg, err := c.gpuConfig()
	if err != nil {
		return broken("correct the configuration", "gpu.%v", err)
	}
	// A daemon that runs has the link for hooks in its state directory.
	if cfg.Injector.HookDir, err = os.MkdirTemp("", "gnoded-check-"); err != nil {
		return broken("make room in the directory for temporary files", "GPUs: %v", err)
	}
	defer os.RemoveAll(cfg.Injector.HookDir)
	node, err := gpu.Open(cfg)
	if err != nil {
		return broken("see the text; nvidia-smi must work on this machine", "GPUs: %v", err)
	}
	defer node.Close()
	inv := node.Inventory()
	if len(inv.GPUs) == 0 {
		return fine("no GPUs: there is no NVIDIA driver, the node takes CPU jobs only")
	}
	kind := ""
	if inv.Simulated {
		kind = ", simulated"
	}
	list := fine("%d GPUs (%s), driver %s, CUDA %d.%d%s", len(inv.GPUs), inv.GPUs[0].Model, inv.Driver, inv.CUDA/100, inv.CUDA%100, kind)
	for _, g := range inv.GPUs {
		if g.Unhealthy != "" {
			list = append(list, finding{what: fmt.Sprintf("GPU %d (%s) takes no jobs", g.Index, g.UUID), fix: g.Unhealthy})
		}
	}
	return list
}
