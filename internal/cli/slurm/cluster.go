package slurm

import (
	"fmt"

	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/slurm/getopt"
	"gbatch/internal/job/importer/slurm"
)

// version is the release of Slurm whose formats these commands print.
const version = "22.05.8"

const clusterName = slurm.ClusterName

// clusters is the option -M, which can name one cluster and all of them alike.
type clusters struct{ named []string }

func (c *clusters) option() getopt.Option {
	return getopt.List(&c.named, "-M", "--clusters", "--cluster")
}

func (c *clusters) check() error {
	for _, name := range c.named {
		if err := slurm.CheckCluster(name); err != nil {
			return exit.Usagef("%w", err)
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
