package slurmsite

import (
	"fmt"
	"strings"

	"gbatch/internal/job/nodelist"
)

// nodeText says what goes into the nodes' files, for nodes that are alike together.
// All are in one cluster: what parts them in Slurm are partitions, and the jobs of
// one may need nodes of all its kinds.
func (s *site) nodeText() string {
	type alike struct{ line, address string }
	var b strings.Builder
	var kinds []alike
	nodes, texts := map[alike][]string{}, map[*nodeLine]string{}
	for _, n := range s.nodes {
		if texts[n.line] == "" {
			texts[n.line] = n.line.text()
		}
		kind := alike{texts[n.line], n.address}
		if nodes[kind] == nil {
			kinds = append(kinds, kind)
		}
		nodes[kind] = append(nodes[kind], n.name)
	}
	for i, kind := range kinds {
		if b.Len() > MaxText {
			fmt.Fprintf(&b, "# and %d kinds more\n", len(kinds)-i)
			break
		}
		fmt.Fprintf(&b, "# gnoded.yaml on %s:\n#   clusterId: 1\n", nodelist.Format(nodes[kind]))
		if kind.address != "" {
			fmt.Fprintf(&b, "#   address: %s\n", kind.address)
		}
		b.WriteString(kind.line)
	}
	return b.String()
}

func (n *nodeLine) text() string {
	b := strings.Builder{}
	if len(n.features) > 0 {
		fmt.Fprintf(&b, "#   features: [%s]\n", strings.Join(n.features, ", "))
	}
	if n.reserveCores > 0 || n.reserveMiB > 0 {
		var parts []string
		if n.reserveCores > 0 {
			parts = append(parts, fmt.Sprintf("cores: %d", n.reserveCores))
		}
		if n.reserveMiB > 0 {
			parts = append(parts, fmt.Sprintf("memory: %dMiB", n.reserveMiB))
		}
		fmt.Fprintf(&b, "#   reserve: {%s}\n", strings.Join(parts, ", "))
	}
	has := fmt.Sprintf("%d cores, %d MiB", n.cores, n.memMiB)
	if n.gpus != "" {
		has += ", GPUs " + n.gpus
	}
	fmt.Fprintf(&b, "#   (it should show %s)\n", has)
	return b.String()
}
