package cli

import (
	"context"
	"slices"
)

// Widest finds how many cores the node has that has most of them, for batch scripts that
// say how many tasks they have and not on how many nodes. It is 0 where nothing is known.
func (a *App) Widest(ctx context.Context) func(partitions []string) int {
	return func(partitions []string) int {
		info, err := a.Client.Cluster(ctx)
		if err != nil {
			return 0 // the submission tells what is wrong
		}
		most := 0
		for _, n := range info.Nodes {
			in := func(p string) bool { return slices.Contains(n.Partitions, p) }
			if len(partitions) == 0 || slices.ContainsFunc(partitions, in) {
				most = max(most, int(n.CPUs.Total))
			}
		}
		return most
	}
}
