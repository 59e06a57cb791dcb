package slurm

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/human"
)

// nodeText is one node as scontrol shows it.
func nodeText(n *api.Node, details bool) string {
	has, used := nodeTRES(n)
	text := func(s string) string { return cmp.Or(human.Clean(s), none) }
	lines := []string{
		fmt.Sprintf("NodeName=%s CoresPerSocket=%d ", human.Clean(n.Name), n.CPUs.Total),
		fmt.Sprintf("CPUAlloc=%d CPUEfctv=%d CPUTot=%d CPULoad=N/A", n.CPUs.Total-n.CPUs.Free, n.CPUs.Total, n.CPUs.Total),
		"AvailableFeatures=" + text(strings.Join(n.Features, ",")), "ActiveFeatures=" + text(strings.Join(n.Features, ",")), "Gres=" + text(gres(n)),
	}
	if details {
		lines = append(lines, "GresDrain=N/A", "GresUsed="+gresUsed(n))
	}
	host := cmp.Or(human.Clean(n.Hostname), human.Clean(n.Name))
	lines = append(lines,
		fmt.Sprintf("NodeAddr=%s NodeHostName=%s Version=%s", host, host, human.Clean(n.Version)),
		fmt.Sprintf("RealMemory=%d AllocMem=%d FreeMem=N/A Sockets=1 Boards=1", n.MemBytes.Total>>20, (n.MemBytes.Total-n.MemBytes.Free)>>20),
		fmt.Sprintf("State=%s ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A", longNodeState(n)),
		fmt.Sprintf("Partitions=%s ", partition(n.Cluster)),
		"BootTime=None SlurmdStartTime=None", "LastBusyTime=Unknown",
		"CfgTRES="+has, "AllocTRES="+used,
		"CapWatts=n/a", "CurrentWatts=0 AveWatts=0", "ExtSensorsJoules=n/s ExtSensorsWatts=0 ExtSensorsTemp=n/s")
	if n.Reason != "" {
		lines = append(lines, "Reason="+human.Clean(n.Reason))
	}
	return strings.Join(lines, "\n   ") + "\n"
}

// partitionInfo is a cluster as Slurm's commands show it.
type partitionInfo struct {
	name    string
	only    bool // there is no other: jobs that name none go there
	nodes   []string
	cpus    int64
	memory  int64
	gpus    int
	maxTime int64 // seconds; 0: no bound
	defTime int64
}

func partitionList(ctx context.Context, a *cli.App) ([]partitionInfo, error) {
	info, err := a.Client.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	site, err := a.Client.Site(ctx)
	if err != nil {
		return nil, err
	}
	numbers, err := known(ctx, a)
	if err != nil {
		return nil, err
	}
	var out []partitionInfo
	for _, number := range numbers {
		p := partitionInfo{name: partition(number), only: len(numbers) == 1, maxTime: site.MaxDurationS, defTime: site.DefaultDurationS}
		for _, n := range info.Nodes {
			if n.Cluster == number {
				p.nodes = append(p.nodes, n.Name)
				p.cpus, p.memory, p.gpus = p.cpus+n.CPUs.Total, p.memory+n.MemBytes.Total>>20, p.gpus+len(n.GPUs)
			}
		}
		out = append(out, p)
	}
	return out, nil
}

func limitText(secs int64, absent string) string {
	if secs == 0 {
		return absent
	}
	return elapsed(time.Duration(secs) * time.Second)
}

func (p *partitionInfo) tres() string {
	s := fmt.Sprintf("cpu=%d,mem=%dM,node=%d,billing=%d", p.cpus, p.memory, len(p.nodes), p.cpus)
	if p.gpus > 0 {
		s += fmt.Sprintf(",gres/gpu=%d", p.gpus)
	}
	return s
}

func (p *partitionInfo) text() string {
	return strings.Join([]string{
		"PartitionName=" + p.name,
		"AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL",
		"AllocNodes=ALL Default=" + pick(p.only, "YES", "NO") + " QoS=N/A",
		"DefaultTime=" + limitText(p.defTime, "NONE") + " DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO",
		"MaxNodes=UNLIMITED MaxTime=" + limitText(p.maxTime, "UNLIMITED") + " MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED",
		"Nodes=" + human.Hosts(p.nodes),
		"PriorityJobFactor=1 PriorityTier=1 RootOnly=NO ReqResv=NO OverSubscribe=NO",
		"OverTimeLimit=NONE PreemptMode=OFF",
		fmt.Sprintf("State=UP TotalCPUs=%d TotalNodes=%d SelectTypeParameters=NONE", p.cpus, len(p.nodes)),
		"JobDefaults=(null)",
		"DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED",
		"TRES=" + p.tres(),
	}, "\n   ") + "\n"
}

func (p *partitionInfo) json() object {
	flags := []string{}
	if p.only {
		flags = append(flags, "default")
	}
	return object{
		"name": p.name, "flags": flags, "nodes": human.Hosts(p.nodes), "total_cpus": p.cpus, "total_nodes": len(p.nodes), "tres": p.tres(), "state": "UP",
		"max_time_limit": p.maxTime / 60, "default_time_limit": p.defTime / 60, "allowed_accounts": "", "allowed_allocation_groups": "", "allowed_qos": "", "qos": "",
	}
}

func reservationText(r *api.Reservation, a *cli.App) string {
	flags, state := "", "INACTIVE"
	if r.Maintenance {
		flags = "MAINT"
	}
	if now := a.Now(); !now.Before(r.Start) && now.Before(r.End) {
		state = "ACTIVE"
	}
	list := func(l []string) string { return cmp.Or(human.Clean(strings.Join(l, ",")), none) }
	part := none
	if r.Cluster > 0 {
		part = partition(r.Cluster)
	}
	return strings.Join([]string{
		fmt.Sprintf("ReservationName=%s StartTime=%s EndTime=%s Duration=%s", human.Clean(r.Name), at(r.Start, "None"), at(r.End, "None"), elapsed(r.End.Sub(r.Start))),
		fmt.Sprintf("Nodes=%s NodeCnt=%d CoreCnt=0 Features=(null) PartitionName=%s Flags=%s", human.Hosts(r.Nodes), len(r.Nodes), part, flags),
		"TRES=(null)",
		fmt.Sprintf("Users=%s Groups=(null) Accounts=%s Licenses=(null) State=%s BurstBuffer=(null) Watts=n/a", list(r.Users), list(r.Projects), state),
		"MaxStartDelay=(null)",
	}, "\n   ") + "\n"
}

func reservationJSON(r *api.Reservation) object {
	flags := []string{}
	if r.Maintenance {
		flags = append(flags, "MAINT")
	}
	return object{"name": r.Name, "start_time": epoch(r.Start), "end_time": epoch(r.End), "node_list": human.Hosts(r.Nodes), "node_count": len(r.Nodes),
		"users": strings.Join(r.Users, ","), "accounts": strings.Join(r.Projects, ","), "flags": flags, "partition": given(partition(r.Cluster))}
}
