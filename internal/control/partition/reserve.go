package partition

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gbatch/internal/state"
	"gbatch/sched"
)

// Fill gives a reservation the nodes that are in a partition now; to one that counts
// nodes, as those of which it may have so many. Without a name it changes nothing.
func Fill(w *sched.Window, name string, nodes *state.Nodes) *state.Refusal {
	if name == "" {
		return nil
	}
	if len(w.Nodes) > 0 {
		return &state.Refusal{Code: state.Conflict, Path: "partition", Message: fmt.Sprintf("reservation %q names nodes and a partition", w.Name), Hint: "name either"}
	}
	var in, all []string
	for n := range nodes.All() {
		if all = append(all, n.Partitions...); slices.Contains(n.Partitions, name) {
			in = append(in, n.Name)
		}
	}
	switch {
	case len(in) == 0:
		slices.Sort(all)
		return &state.Refusal{Code: state.NotFound, Path: "partition", Message: fmt.Sprintf("no node is in a partition %q", name),
			Hint: "partitions that have nodes: " + cmp.Or(strings.Join(slices.Compact(all), ", "), "none")}
	case w.Count > 0:
		w.Match.NodeNames = in
	default:
		w.Nodes = in
	}
	return nil
}
