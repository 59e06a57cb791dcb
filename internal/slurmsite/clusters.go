package slurmsite

import (
	"fmt"
	"slices"
	"strings"

	"gbatch/internal/job"
)

// cluster is nodes that are in the same partitions. A node is in one cluster, and
// in Slurm may be in several partitions; those become features too.
type cluster struct {
	number     int
	partitions []*partition
	nodes      []*node
}

func (s *site) clusters() (all []*cluster) {
	in := map[string][]*partition{}
	for _, p := range s.partitions {
		for _, name := range p.nodes {
			in[name] = append(in[name], p)
		}
	}
	by := map[string]*cluster{}
	for _, n := range s.nodes {
		var names []string
		for _, p := range in[n.name] {
			names = append(names, p.name)
		}
		key := strings.Join(names, ",")
		if by[key] == nil {
			by[key] = &cluster{number: len(all) + 1, partitions: in[n.name]}
			all = append(all, by[key])
		}
		by[key].nodes = append(by[key].nodes, n)
	}
	return all
}

// access notes partitions whose nodes let others in by another partition.
func (s *site) access(clusters []*cluster) {
	for _, p := range s.partitions {
		if p.accounts == nil && p.noAccounts == nil {
			continue
		}
		it := item{p.name + ".AllowAccounts", strings.Join(p.accounts, ","), p.place}
		if p.accounts == nil {
			it = item{p.name + ".DenyAccounts", strings.Join(p.noAccounts, ","), p.place}
		}
		if len(s.accounts) == 0 {
			s.note(it, "becomes clusters of projects, which are in a dump")
			continue
		}
		for _, c := range clusters {
			at := slices.IndexFunc(c.partitions, func(o *partition) bool {
				return slices.ContainsFunc(s.accounts, func(a *account) bool { return o.allows(a.name) && !p.allows(a.name) })
			})
			if slices.Contains(c.partitions, p) && at >= 0 {
				s.note(it, "the nodes of cluster %d let others in too, who may use partition %s there", c.number, c.partitions[at].name)
			}
		}
	}
}

// allowed are the clusters that an account may use; nil: all.
func (s *site) allowed(account string, clusters []*cluster) (out []int) {
	for _, c := range clusters {
		if len(c.partitions) == 0 || slices.ContainsFunc(c.partitions, func(p *partition) bool { return p.allows(account) }) {
			out = append(out, c.number)
		}
	}
	switch {
	case len(out) == len(clusters):
		return nil
	case len(out) == 0:
		s.note(item{"Account", account, s.in.Conf.Name}, "may use no partition: keep its jobs away by its members")
	}
	return out
}

func (p *partition) allows(account string) bool {
	if p.accounts != nil {
		return slices.Contains(p.accounts, account)
	}
	return !slices.Contains(p.noAccounts, account)
}

// features are what jobs ask for: the node's own words and its partitions.
func (n *node) wanted(c *cluster) []string {
	words := slices.Clone(n.features)
	for _, p := range c.partitions {
		words = append(words, "partition="+p.name)
	}
	return words
}

// nodeText says what goes into the nodes' files, for nodes that are alike together.
func (s *site) nodeText(clusters []*cluster) string {
	var b strings.Builder
	for _, c := range clusters {
		var names []string
		for _, p := range c.partitions {
			names = append(names, p.name)
		}
		fmt.Fprintf(&b, "# cluster %d: %d nodes, of the partitions %s\n", c.number, len(c.nodes), strings.Join(names, ", "))
		var texts []string
		nodes := map[string][]string{}
		for _, n := range c.nodes {
			text := n.text(c)
			if nodes[text] == nil {
				texts = append(texts, text)
			}
			nodes[text] = append(nodes[text], n.name)
		}
		for _, text := range texts {
			fmt.Fprintf(&b, "# gnoded.yaml on %s:\n%s", job.FormatNodes(nodes[text]), text)
		}
	}
	return b.String()
}

func (n *node) text(c *cluster) string {
	var b strings.Builder
	fmt.Fprintf(&b, "#   clusterId: %d\n", c.number)
	if words := n.wanted(c); len(words) > 0 {
		fmt.Fprintf(&b, "#   features: [%s]\n", strings.Join(words, ", "))
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
