package noded

import (
	"context"
	"errors"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/noded/config"
	"gbatch/internal/noded/contact"
	"gbatch/internal/noded/devices"
	"gbatch/internal/pace"
)

// houseLoop does what has to be done now and then.
func (a *Agent) houseLoop(ctx context.Context) {
	for client.Sleep(ctx, houseEvery) == nil {
		now := time.Now()
		a.kept.prune(now)
		a.sweepData()
		done, err := a.images.Collect(now)
		if err != nil {
			a.log.Error("shrink image store", "error", err)
		}
		if len(done.Images) > 0 {
			a.log.Info("image store shrunk", "images", len(done.Images), "freed", config.FormatBytes(done.Freed), "kept", config.FormatBytes(done.Kept))
		}
	}
}

// houseEvery is how often logs and images are looked through.
const houseEvery = 5 * time.Minute

// sweepData removes inputs that no rank has any more. It waits for the first
// desired set, which may order their ranks again.
func (a *Agent) sweepData() {
	var held map[string]bool
	if a.contact.Heard() {
		held = map[string]bool{}
		for _, r := range a.all() {
			held[r.Status().ID.String()] = true
		}
	}
	freed, err := a.data.Sweep(held)
	if err != nil {
		a.log.Error("remove old inputs", "error", err)
	}
	if freed > 0 {
		a.log.Info("cache of inputs shrunk", "freed", config.FormatBytes(freed))
	}
}

// networkEvery is how often the node's network is looked at: a firewall that is
// loaded anew takes away what keeps jobs apart. Where nothing was changed the look is one question to the kernel.
const networkEvery = 2 * time.Second

func (a *Agent) networkLoop(ctx context.Context) {
	if !a.network.Bridged() {
		return
	}
	for client.Sleep(ctx, networkEvery) == nil {
		repaired, err := a.network.Ensure()
		a.health.networkError(err)
		if err != nil {
			a.log.Error("repair the jobs' network", "error", err)
		} else if repaired {
			a.log.Warn("something removed the jobs' firewall rules or ended forwarding; they are back")
		}
	}
}

// gpuLoop tells the controller of GPUs that come, go and fail, and ends ranks
// whose GPU is lost.
func (a *Agent) gpuLoop(ctx context.Context) {
	a.devices.Watch(ctx, func() {
		a.contact.Tell(contact.AtOnce)
		for _, r := range a.all() {
			r.CheckGPUs()
		}
	})
}

// sampleLoop tells the controller when GPUs do something else than it knows of.
func (a *Agent) sampleLoop(ctx context.Context) {
	var told []api.GPUSample
	for client.Sleep(ctx, devices.LookEvery) == nil {
		if now := a.devices.Samples(); devices.SamplesDiffer(told, now) {
			told = now
			a.contact.Tell(contact.WithinSamples)
		}
	}
}

const (
	scrubAfter = 10 * time.Minute // so that a start has its disk to itself
	scrubEvery = 24 * time.Hour
	scrubRate  = 8 << 20 // bytes read in a second
)

// scrubLoop looks once a day whether the disk has changed what jobs shall read of it.
func (a *Agent) scrubLoop(ctx context.Context) {
	for wait := scrubAfter; client.Sleep(ctx, wait) == nil; wait = scrubEvery {
		p := pace.New(ctx, scrubRate, client.Sleep)
		layers, err := a.images.Scrub(a.log, p.Read)
		inputs, ierr := 0, error(nil)
		if ctx.Err() == nil {
			inputs, ierr = a.data.Scrub(a.log, p.Read)
		}
		if ctx.Err() != nil {
			return
		}
		if err := errors.Join(err, ierr); err != nil {
			a.log.Error("some image layers or cached inputs could not be looked through; it is tried again in a day", "error", err)
		}
		a.counters.Damaged(layers + inputs)
		a.log.Info("image layers and cached inputs were looked through", "damaged", layers+inputs)
	}
}
