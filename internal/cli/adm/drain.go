package adm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/jobs"
)

// Drain is gadm drain.
type Drain struct {
	Nodes  []string `arg:"" sep:"none" help:"Nodes, as gpu[01-04]."`
	GPU    string   `name:"gpu" placeholder:"INDEX|UUID" help:"Only this GPU of each node."`
	Reason string   `short:"r" required:"" help:"Why. Everyone whose job waits for the node sees it."`

	Evict    bool          `help:"Have what runs there leave: restartable jobs are halted and go on elsewhere, others are ended. With --deadline: then."`
	Reboot   bool          `help:"Reboot each node when it is empty. It takes jobs again when its checks have passed."`
	Wait     bool          `help:"Come back when no job is there any more; with --reboot, when the nodes are back."`
	Deadline time.Duration `placeholder:"DURATION" help:"Wait so long at most, as 4h."`
}

func (o *Drain) check() error {
	switch {
	case (o.Wait || o.Deadline != 0) && o.GPU != "":
		return exit.Usagef("--wait and --deadline are for whole nodes: what is on one GPU is shown by ginfo --gpus")
	case o.Reboot && o.GPU != "":
		return exit.Usagef("--reboot is for whole nodes; a GPU is reset by nvidia-smi --gpu-reset on its node")
	case o.Deadline < 0 || o.Deadline > 0 && o.Deadline < time.Second:
		return exit.Usagef("--deadline %v: want a time from now, as 4h", o.Deadline)
	}
	return nil
}

// Run takes nodes out of scheduling. What runs on them goes on, or has to leave; both
// may be waited for.
func (o *Drain) Run(ctx context.Context, a *cli.App) error {
	if err := o.check(); err != nil {
		return err
	}
	nodes, err := jobs.ParseNodes(o.Nodes)
	if err != nil {
		return err
	}
	q := api.DrainRequest{GPU: o.GPU, Reason: o.Reason, Evict: o.Evict, Reboot: o.Reboot}
	if o.Evict {
		q.EvictIn = int64(o.Deadline / time.Second)
	}
	var errs []error
	for _, node := range nodes {
		res, err := a.Client.Drain(ctx, node, q)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if res.Jobs > 0 {
			fmt.Fprintf(a.Out, "%s is draining, jobs there: %d\n", node, res.Jobs)
		} else {
			fmt.Fprintf(a.Out, "%s%s drained\n", gpuOf(o.GPU), node)
		}
		for _, j := range res.Evicted {
			errs = append(errs, a.Tell("  job %s (%s) of %s %s", j.ID, j.Name, j.User, j.What))
		}
	}
	if err := errors.Join(errs...); err != nil || !o.Wait && o.Deadline == 0 {
		return err
	}
	wait := o.Deadline
	if o.Evict {
		wait = 0 // what is there then has to leave, and is waited for
	}
	if o.Reboot {
		return await(ctx, a, nodes, wait, awayNode)
	}
	return await(ctx, a, nodes, wait, busyNode)
}
