package slurm

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
)

// version is the release of Slurm whose formats these commands print.
const version = "22.05.8"

// clusterName is the name of the only cluster that these commands know: that of
// the controller. What we call a cluster is a partition here.
const clusterName = "gbatch"

// partition is the name of a cluster; "any" of a job that may go to each.
func partition(cluster int) string {
	if cluster == 0 {
		return "any"
	}
	return strconv.Itoa(cluster)
}

// partitions are clusters, by number.
func partitions(words []string) ([]int, error) {
	var out []int
	for _, w := range words {
		n, err := strconv.Atoi(w)
		if err != nil || n < 1 {
			return nil, exit.Usagef("partition %q: here they are clusters and have numbers; see ginfo", w)
		}
		out = append(out, n)
	}
	return out, nil
}

// clusters is the option -M, which can name one cluster and all of them alike.
type clusters struct{ named []string }

func (c *clusters) option() option { return listOf(&c.named, "-M", "--clusters", "--cluster") }

func (c *clusters) check() error {
	for _, name := range c.named {
		if name != "all" && name != clusterName {
			return exit.Usagef("cluster %q is not known: there is %s; choose the controller with GBATCH_CONTROLLER", name, clusterName)
		}
	}
	return nil
}

// heading is the line that stands before what is listed for a cluster that was named.
func (c *clusters) heading(a *cli.App, noHeader bool) {
	if len(c.named) > 0 && !noHeader {
		fmt.Fprintln(a.Out, "CLUSTER: "+clusterName)
	}
}

// known are the numbers of the clusters that have nodes.
func known(ctx context.Context, a *cli.App) ([]int, error) {
	info, err := a.Client.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	var out []int
	for _, n := range info.Nodes {
		out = append(out, n.Cluster)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}
