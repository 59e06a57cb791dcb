package noded

import (
	"context"
	"time"

	"gbatch/internal/job"
	"gbatch/internal/node"
)

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
