package slurm

import (
	"cmp"
	"fmt"
	"strings"

	"gbatch/internal/api"
	"gbatch/internal/cli/human"
	"gbatch/internal/cli/table"
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
		fmt.Sprintf("Partitions=%s ", human.Clean(strings.Join(partitionsOf(n), ","))),
		"BootTime=None SlurmdStartTime=None", "LastBusyTime=Unknown",
		"CfgTRES="+has, "AllocTRES="+used,
		"CapWatts=n/a", "CurrentWatts=0 AveWatts=0", "ExtSensorsJoules=n/s ExtSensorsWatts=0 ExtSensorsTemp=n/s")
	if n.Reason != "" {
		lines = append(lines, "Reason="+human.Clean(n.Reason))
	}
	return strings.Join(lines, "\n   ") + "\n"
}

func reservationText(v *table.View, r *api.Reservation) string {
	flags, state := strings.Join(reservationFlags(r), ","), "INACTIVE"
	if !v.Now.Before(r.Start) && v.Now.Before(r.End) {
		state = "ACTIVE"
	}
	list := func(l []string) string { return cmp.Or(human.Clean(strings.Join(l, ",")), none) }
	part := none
	if r.Cluster > 0 {
		part = partition(r.Cluster)
	}
	return strings.Join([]string{
		fmt.Sprintf("ReservationName=%s StartTime=%s EndTime=%s Duration=%s", human.Clean(r.Name), at(v, r.Start, "None"), at(v, r.End, "None"), elapsed(r.End.Sub(r.Start))),
		fmt.Sprintf("Nodes=%s NodeCnt=%d CoreCnt=0 Features=(null) PartitionName=%s Flags=%s", human.Hosts(r.Nodes), len(r.Nodes), part, flags),
		"TRES=(null)",
		fmt.Sprintf("Users=%s Groups=(null) Accounts=%s Licenses=(null) State=%s BurstBuffer=(null) Watts=n/a", list(r.Users), list(r.Projects), state),
		"MaxStartDelay=(null)",
	}, "\n   ") + "\n"
}

// reservationFlags are Slurm's words for what it is; those that come again by another
// table have none.
func reservationFlags(r *api.Reservation) []string {
	flags := []string{}
	if r.Maintenance {
		flags = append(flags, "MAINT")
	}
	if r.Every == nil {
		return flags
	}
	f := strings.Fields(r.Every.Schedule)
	if len(f) != 5 || f[3] != "*" || f[2] != "*" || strings.ContainsAny(f[0], "*/,-") {
		return flags
	}
	switch word, ok := map[string]string{"*": "DAILY", "1-5": "WEEKDAY", "0,6": "WEEKEND"}[f[4]]; {
	case f[1] == "*" && f[4] == "*":
		flags = append(flags, "HOURLY")
	case strings.ContainsAny(f[1], "*/,-"):
	case ok:
		flags = append(flags, word)
	case len(f[4]) == 1:
		flags = append(flags, "WEEKLY")
	}
	return flags
}

func reservationJSON(r *api.Reservation) object {
	flags := reservationFlags(r)
	return object{"name": r.Name, "start_time": epoch(r.Start), "end_time": epoch(r.End), "node_list": human.Hosts(r.Nodes), "node_count": len(r.Nodes),
		"users": strings.Join(r.Users, ","), "accounts": strings.Join(r.Projects, ","), "flags": flags, "partition": given(partition(r.Cluster))}
}
