package noded

import (
	"context"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/job"
	"gbatch/internal/noded/devices"
)

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

// newsSamples is how long changed GPU utilization may wait to be told: steady
// work costs no message of its own.
const newsSamples = 5 * time.Second

// sampleLoop tells the controller when GPUs do something else than it knows of.
func (a *Agent) sampleLoop(ctx context.Context) {
	var told []api.GPUSample
	for client.Sleep(ctx, devices.LookEvery) == nil {
		if now := a.devices.Samples(); devices.SamplesDiffer(told, now) {
			told = now
			a.tell(newsSamples)
		}
	}
}
