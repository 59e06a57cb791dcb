// Package adm is gadm, for those who run a site: nodes, GPUs and reservations,
// who may do what, and how the controller fares.
package adm

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/jobs"
)

// gpuOf is what stands before a node's name where one GPU is meant.
func gpuOf(gpu string) string {
	if gpu == "" {
		return ""
	}
	return "GPU " + gpu + " of "
}

// Resume is gadm resume.
type Resume struct {
	Nodes []string `arg:"" sep:"none" help:"Nodes, as gpu[01-04]."`
	GPU   string   `name:"gpu" placeholder:"INDEX|UUID" help:"Only this GPU of each node."`
}

// Run puts nodes back.
func (o *Resume) Run(ctx context.Context, a *cli.App) error {
	return eachNode(a, o.Nodes, strings.ReplaceAll(gpuOf(o.GPU), "%", "%%")+"%s resumed\n", func(node string) error {
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
