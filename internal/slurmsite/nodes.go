package slurmsite

import (
	"fmt"
	"strings"

	"gbatch/internal/job"
)

// nodeText says what goes into the nodes' files, for nodes that are alike together.
// All are in one cluster: what parts them in Slurm are partitions, and the jobs of
// one may need nodes of all its kinds.
func (s *site) nodeText() string {
	var b strings.Builder
	var texts []string
	nodes := map[string][]string{}
	for _, n := range s.nodes {
		text := n.text()
		if nodes[text] == nil {
			texts = append(texts, text)
		}
		nodes[text] = append(nodes[text], n.name)
	}
	for _, text := range texts {
		fmt.Fprintf(&b, "# gnoded.yaml on %s:\n%s", job.FormatNodes(nodes[text]), text)
	}
	return b.String()
}

func (n *node) text() string {
	b := strings.Builder{}
	b.WriteString("#   clusterId: 1\n")
	if len(n.features) > 0 {
		fmt.Fprintf(&b, "#   features: [%s]\n", strings.Join(n.features, ", "))
	}
	if n.address != "" {
		fmt.Fprintf(&b, "#   address: %s\n", n.address)
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
