package rank

import (
	"context"
	"time"

	"gbatch/internal/job"
	"gbatch/internal/node"
)

// blameGPU makes a failure the node's when one of the rank's GPUs is lost: the
// program saw that before anybody else did, or the hook that was to give it the
// GPU. That is the driver's word, which no image has a say in.
func (r *Rank) blameGPU(ctx context.Context, out *node.Exit) {
	ids := r.order.gpus()
	begun := out.Reason == job.ExitCode || out.Reason == job.Signal
	if len(ids) == 0 || !begun && out.Reason != job.BadSpec {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, blameWait)
	defer cancel()
	r.node.Devices.Refresh(ctx)
	if lost := r.node.Devices.Lost(ids); lost != "" {
		out.Reason, out.Message = job.GPUError, lost+" (the program's end: "+out.Message+")"
	}
}

// blameWait bounds how long a rank's end is held up by a driver that hangs.
const blameWait = 2 * time.Second
