package slurm

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/human"
)

// What Slurm calls a partition is one of the site's or of a node's, or, where there
// are none, a cluster by its number.

// partition is the name of a cluster; "any" of a job that may go to each.
func partition(cluster int) string {
	if cluster == 0 {
		return "any"
	}
	return strconv.Itoa(cluster)
}

// partitionOf is that of a job; with commas between where several will do.
func partitionOf(j *api.Job) string { return cmp.Or(j.Partition, partition(j.Cluster)) }

// inParts says whether a job is of one of the partitions that are asked for.
func inParts(parts []string, j *api.Job) bool {
	return len(parts) == 0 || slices.ContainsFunc(strings.Split(partitionOf(j), ","), func(p string) bool { return slices.Contains(parts, p) })
}

// partitionsOf are those of a node.
func partitionsOf(n *api.Node) []string {
	if len(n.Partitions) == 0 {
		return []string{partition(n.Cluster)}
	}
	return n.Partitions
}

// partitionInfo is a partition as Slurm's commands show it.
type partitionInfo struct {
	api.Partition
	usual   bool // jobs that name none go there
	cpus    int64
	memory  int64
	gpus    int
	maxTime int64 // seconds; 0: no bound
	defTime int64
}

// partitionList is all partitions, and the nodes.
func partitionList(ctx context.Context, a *cli.App) ([]partitionInfo, *api.ClusterInfo, error) {
	info, err := a.Client.Cluster(ctx)
	if err != nil {
		return nil, nil, err
	}
	site, err := a.Client.Site(ctx)
	if err != nil {
		return nil, nil, err
	}
	list := info.Partitions
	if len(list) == 0 {
		list = clustersAsPartitions(info.Nodes)
	}
	var out []partitionInfo
	for _, p := range list {
		i := partitionInfo{Partition: p, usual: p.Default || len(list) == 1, maxTime: cmp.Or(p.MaxDurationS, site.MaxDurationS), defTime: cmp.Or(p.DefaultDurationS, site.DefaultDurationS)}
		if i.maxTime > 0 {
			i.defTime = min(i.defTime, i.maxTime)
		}
		for _, n := range info.Nodes {
			if slices.Contains(p.Nodes, n.Name) {
				i.cpus, i.memory, i.gpus = i.cpus+n.CPUs.Total, i.memory+n.MemBytes.Total>>20, i.gpus+len(n.GPUs)
			}
		}
		out = append(out, i)
	}
	return out, info, nil
}

func clustersAsPartitions(nodes []api.Node) (list []api.Partition) {
	by := map[int][]string{}
	var numbers []int
	for _, n := range nodes {
		if by[n.Cluster] == nil {
			numbers = append(numbers, n.Cluster)
		}
		by[n.Cluster] = append(by[n.Cluster], n.Name)
	}
	slices.Sort(numbers)
	for _, c := range numbers {
		list = append(list, api.Partition{Name: partition(c), Nodes: by[c], State: "up"})
	}
	return list
}

func limitText(secs int64, absent string) string {
	if secs == 0 {
		return absent
	}
	return elapsed(time.Duration(secs) * time.Second)
}

func (p *partitionInfo) tres() string {
	s := fmt.Sprintf("cpu=%d,mem=%dM,node=%d,billing=%d", p.cpus, p.memory, len(p.Nodes), p.cpus)
	if p.gpus > 0 {
		s += fmt.Sprintf(",gres/gpu=%d", p.gpus)
	}
	return s
}

// who says whom it takes, as AllowAccounts=a,b, DenyAccounts=a,b or AllowAccounts=ALL.
func who(what string, only, not []string) string {
	if len(not) > 0 && len(only) == 0 {
		return "Deny" + what + "=" + human.Clean(strings.Join(not, ","))
	}
	return "Allow" + what + "=" + cmp.Or(human.Clean(strings.Join(only, ",")), "ALL")
}

func bound[T int | int64](n T, absent string) string {
	if n == 0 {
		return absent
	}
	return fmt.Sprint(n)
}

func (p *partitionInfo) text() string {
	memory := "DefMemPerNode=UNLIMITED"
	if p.MemPerCore > 0 {
		memory = fmt.Sprintf("DefMemPerCPU=%d", p.MemPerCore>>20)
	}
	return strings.Join([]string{
		"PartitionName=" + human.Clean(p.Name),
		"AllowGroups=ALL " + who("Accounts", p.Projects, p.NotProjects) + " " + who("Qos", p.QOS, p.NotQOS),
		"AllocNodes=ALL Default=" + pick(p.usual, "YES", "NO") + " QoS=N/A",
		"DefaultTime=" + limitText(p.defTime, "NONE") + " DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO",
		fmt.Sprintf("MaxNodes=%s MaxTime=%s MinNodes=%d LLN=NO MaxCPUsPerNode=%s", bound(p.MaxNodes, "UNLIMITED"), limitText(p.maxTime, "UNLIMITED"), p.MinNodes, bound(p.MaxCPUsPerNode, "UNLIMITED")),
		"Nodes=" + human.Hosts(p.Nodes),
		fmt.Sprintf("PriorityJobFactor=%s PriorityTier=1 RootOnly=NO ReqResv=NO OverSubscribe=NO", bound(p.Priority, "1")),
		"OverTimeLimit=NONE PreemptMode=OFF",
		fmt.Sprintf("State=%s TotalCPUs=%d TotalNodes=%d SelectTypeParameters=NONE", strings.ToUpper(p.State), p.cpus, len(p.Nodes)),
		"JobDefaults=(null)",
		memory + " MaxMemPerNode=" + bound(p.MaxMemPerNode>>20, "UNLIMITED"),
		"TRES=" + p.tres(),
	}, "\n   ") + "\n"
}

func (p *partitionInfo) json() object {
	flags := []string{}
	if p.usual {
		flags = append(flags, "default")
	}
	return object{
		"name": p.Name, "flags": flags, "nodes": human.Hosts(p.Nodes), "total_cpus": p.cpus, "total_nodes": len(p.Nodes), "tres": p.tres(), "state": strings.ToUpper(p.State),
		"max_time_limit": p.maxTime / 60, "default_time_limit": p.defTime / 60, "allowed_accounts": strings.Join(p.Projects, ","), "denied_accounts": strings.Join(p.NotProjects, ","),
		"allowed_allocation_groups": "", "allowed_qos": strings.Join(p.QOS, ","), "denied_qos": strings.Join(p.NotQOS, ","), "qos": "", "priority_job_factor": p.Priority,
	}
}
