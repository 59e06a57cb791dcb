package site

import (
	"cmp"
	"fmt"
	"slices"

	"gbatch/internal/api"
	"gbatch/internal/control/partition"
	"gbatch/internal/job"
	"gbatch/internal/job/nodelist"
	"gbatch/internal/job/sizes"
	"gbatch/sched"
)

// Partition is a name for nodes, with what jobs get and may ask that run there by it.
type Partition struct {
	Name     string          `yaml:"name"`
	Nodes    []string        `yaml:"nodes,omitempty"`    // as n[01-16]; beside those whose own file has the feature partition=NAME
	Clusters []int           `yaml:"clusters,omitempty"` // all nodes of these
	AllNodes bool            `yaml:"allNodes,omitempty"`
	Default  bool            `yaml:"default,omitempty"` // of jobs that name none
	State    partition.State `yaml:"state,omitempty"`
	Reason   string          `yaml:"reason,omitempty"`   // why it is not up
	Priority int64           `yaml:"priority,omitempty"` // 0 to 1000, its part of policy.weights.partition

	DefaultDuration Seconds `yaml:"defaultDuration,omitempty"` // of jobs that do not say
	MaxDuration     Seconds `yaml:"maxDuration,omitempty"`
	MinNodes        int     `yaml:"minNodes,omitempty"` // of a job
	MaxNodes        int     `yaml:"maxNodes,omitempty"`
	MaxGPUs         int     `yaml:"maxGpus,omitempty"` // of a job, on all its nodes
	MaxCPUsPerNode  int     `yaml:"maxCpusPerNode,omitempty"`
	MaxMiBPerNode   int64   `yaml:"maxMiBPerNode,omitempty"`
	MiBPerCore      int64   `yaml:"defaultMiBPerCore,omitempty"` // memory of jobs that do not say

	Projects    []string `yaml:"projects,omitempty"` // whose jobs it takes; empty: all
	NotProjects []string `yaml:"notProjects,omitempty"`
	Users       Members  `yaml:"users,omitempty"`
	NotUsers    Members  `yaml:"notUsers,omitempty"`
	QOS         []string `yaml:"qos,omitempty"` // classes of service
	NotQOS      []string `yaml:"notQos,omitempty"`
}

// maxPartitions bounds them, since each node is held against each.
const maxPartitions = 200

func (c Config) checkPartitions(bad func(path, format string, a ...any)) {
	if len(c.Partitions) > maxPartitions {
		bad("partitions", "has %d entries, at most %d are allowed", len(c.Partitions), maxPartitions)
	}
	seen, usual := map[string]bool{}, ""
	for i, p := range c.Partitions {
		at := fmt.Sprintf("partitions[%d]", i)
		switch {
		case !partitionRule.MatchString(p.Name) || digits(p.Name):
			bad(at+".name", "%q: use letters, digits, '.', '_', ':', '+' and '-', at most 64, and not a number alone, which is a cluster's", p.Name)
		case seen[p.Name]:
			bad(at+".name", "%q is there twice", p.Name)
		}
		seen[p.Name] = true
		if p.Default && usual != "" {
			bad(at+".default", "partition %s is the default already", usual)
		} else if p.Default {
			usual = p.Name
		}
		p.check(at, bad)
		if most := c.Limits.MaxDuration; max(p.MaxDuration, p.DefaultDuration) > most {
			bad(at, "has a duration above limits.maxDuration, %s, which is that of all jobs: raise it there too", job.Duration(most))
		}
		for _, name := range slices.Concat(p.Projects, p.NotProjects) {
			if _, ok := c.Project(name); !ok {
				bad(at+".projects", "%q is not among the projects", name)
			}
		}
		for _, name := range slices.Concat(p.QOS, p.NotQOS) {
			if _, ok := c.Policy.QOS[name]; !ok {
				bad(at+".qos", "%q is not in policy.qos", name)
			}
		}
	}
}

func (p *Partition) check(at string, bad func(path, format string, a ...any)) {
	for i, list := range p.Nodes {
		if _, err := nodelist.Parse(list); err != nil {
			bad(fmt.Sprintf("%s.nodes[%d]", at, i), "%v", err)
		}
	}
	for _, n := range p.Clusters {
		if n < 1 {
			bad(at+".clusters", "%d: clusters are numbered from 1", n)
		}
	}
	switch p.State {
	case "", partition.Up, partition.Down, partition.Drain, partition.Inactive:
	default:
		bad(at+".state", "%q: use up, down, drain or inactive", p.State)
	}
	if p.Priority < 0 || p.Priority > 1000 {
		bad(at+".priority", "%d: want 0 to 1000", p.Priority)
	}
	if p.MaxDuration > 0 && p.DefaultDuration > p.MaxDuration {
		bad(at+".defaultDuration", "is above maxDuration")
	}
	if p.MaxNodes > 0 && p.MinNodes > p.MaxNodes {
		bad(at+".minNodes", "is above maxNodes")
	}
	if min(int64(p.DefaultDuration), int64(p.MaxDuration), int64(p.MinNodes), int64(p.MaxNodes), int64(p.MaxGPUs), int64(p.MaxCPUsPerNode), p.MaxMiBPerNode, p.MiBPerCore) < 0 {
		bad(at, "has a bound below 0")
	}
	p.Users.check(at+".users", bad)
	p.NotUsers.check(at+".notUsers", bad)
}

func digits(s string) bool {
	return s != "" && !slices.ContainsFunc([]byte(s), func(c byte) bool { return c < '0' || c > '9' })
}

// partitions are what the controller goes by.
func (c Config) partitions() (list partition.List) {
	for _, p := range c.Partitions {
		out := partition.Partition{
			Name: p.Name, Default: p.Default, State: p.State, Reason: p.Reason, Priority: p.Priority, AllNodes: p.AllNodes, Clusters: p.Clusters,
			DefaultRun: p.DefaultDuration.Millis(), MaxRun: p.MaxDuration.Millis(), MinNodes: p.MinNodes, MaxNodes: p.MaxNodes,
			MaxMilliGPU: int64(p.MaxGPUs) * sched.WholeGPU, MaxMilliCPU: int64(p.MaxCPUsPerNode) * 1000, MaxMiB: p.MaxMiBPerNode,
			Projects: p.Projects, NotProjects: p.NotProjects, QOS: p.QOS, NotQOS: p.NotQOS,
		}
		for _, list := range p.Nodes {
			names, _ := nodelist.Parse(list) // it was checked
			out.Nodes = append(out.Nodes, names...)
		}
		list = append(list, out)
	}
	return list
}

// resolveMemory gives a job that has not said how much memory it wants what the
// partition has for it that it names first, or is in by default.
func (c Config) resolveMemory(spec *job.Spec) {
	g := spec.Gbatch
	if g == nil || !g.MemoryByDefault {
		return
	}
	i := slices.IndexFunc(c.Partitions, func(p Partition) bool {
		if len(g.Partitions) == 0 {
			return p.Default && spec.Request.Resources.ClusterID == 0
		}
		return p.Name == g.Partitions[0]
	})
	if i >= 0 && c.Partitions[i].MiBPerCore > 0 {
		r := &spec.Request.Resources
		r.CPUMemoryGB = max(sizes.GiB(c.Partitions[i].MiBPerCore*int64(r.CPUs)), 1)
	}
}

// PartitionToAPI is a partition as the API has it, without its nodes.
func PartitionToAPI(p Partition) api.Partition {
	return api.Partition{
		Name: p.Name, Nodes: []string{}, Default: p.Default, State: cmp.Or(string(p.State), string(partition.Up)), Reason: p.Reason, Priority: p.Priority,
		DefaultDurationS: int64(p.DefaultDuration), MaxDurationS: int64(p.MaxDuration), MinNodes: p.MinNodes, MaxNodes: p.MaxNodes, MaxGPUs: p.MaxGPUs,
		MaxCPUsPerNode: p.MaxCPUsPerNode, MaxMemPerNode: p.MaxMiBPerNode << 20, MemPerCore: p.MiBPerCore << 20,
		Projects: p.Projects, NotProjects: p.NotProjects, QOS: p.QOS, NotQOS: p.NotQOS,
	}
}
