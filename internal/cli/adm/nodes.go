// Package adm is gadm, for those who run a site: nodes, GPUs and reservations,
// who may do what, and how the controller fares.
package adm

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

	Wait     bool          `help:"Come back when no job is there any more."`
	Deadline time.Duration `placeholder:"DURATION" help:"Wait so long at most, as 4h."`
}

// Run takes nodes out of scheduling; what runs on them goes on, and may be waited
// for.
func (o *Drain) Run(ctx context.Context, a *cli.App) error {
	if (o.Wait || o.Deadline != 0) && o.GPU != "" {
		return exit.Usagef("--wait and --deadline are for whole nodes: what is on one GPU is shown by ginfo --gpus")
	}
	if o.Deadline < 0 {
		return exit.Usagef("--deadline %v: want a time from now, as 4h", o.Deadline)
	}
	err := eachNode(a, o.Nodes, gpuOf(o.GPU)+"%s drained\n", func(node string) error {
		return a.Client.Drain(ctx, node, api.DrainRequest{GPU: o.GPU, Reason: o.Reason})
	})
	if err != nil || !o.Wait && o.Deadline == 0 {
		return err
	}
	nodes, err := jobs.ParseNodes(o.Nodes)
	if err != nil {
		return err
	}
	return awaitEmpty(ctx, a, nodes, o.Deadline)
}

// gpuOf is what stands before a node's name where one GPU is meant.
func gpuOf(gpu string) string {
	if gpu == "" {
		return ""
	}
	return "GPU " + strings.ReplaceAll(gpu, "%", "%%") + " of "
}

// Resume is gadm resume.
type Resume struct {
	Nodes []string `arg:"" sep:"none" help:"Nodes, as gpu[01-04]."`
	GPU   string   `name:"gpu" placeholder:"INDEX|UUID" help:"Only this GPU of each node."`
}

// Run puts nodes back.
func (o *Resume) Run(ctx context.Context, a *cli.App) error {
	return eachNode(a, o.Nodes, gpuOf(o.GPU)+"%s resumed\n", func(node string) error {
		return a.Client.Resume(ctx, node, api.DrainRequest{GPU: o.GPU})
	})
}

// Forget is gadm forget.
type Forget struct {
	Nodes      []string `arg:"" sep:"none" help:"Nodes that ginfo shows as lost, as gpu[01-04]."`
	GiveUpJobs bool     `help:"And the jobs that run on there without contact (runsAlone of their QOS). Only when the machine is off: they are started elsewhere where they are retried."`
}

// Run drops nodes that are gone for good.
func (o *Forget) Run(ctx context.Context, a *cli.App) error {
	return eachNode(a, o.Nodes, "%s forgotten\n", func(node string) error { return a.Client.Forget(ctx, node, o.GiveUpJobs) })
}

// eachNode is each for lists of nodes.
func eachNode(a *cli.App, lists []string, done string, do func(string) error) error {
	nodes, err := jobs.ParseNodes(lists)
	if err != nil {
		return err
	}
	return each(a, nodes, done, do)
}

// each does something to all that are named and says so.
func each(a *cli.App, names []string, done string, do func(string) error) error {
	var errs []error
	for _, n := range names {
		if err := do(n); err != nil {
			errs = append(errs, err)
			continue
		}
		fmt.Fprintf(a.Out, done, n)
	}
	return errors.Join(errs...)
}
