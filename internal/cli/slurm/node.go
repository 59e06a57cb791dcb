package slurm

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gbatch/internal/api"
	"gbatch/internal/job/indexes"
)

// nodeState is a node's state in Slurm's words. A * is behind that of a node that
// is silent.
func nodeState(n *api.Node) string {
	switch {
	case n.State == "lost":
		return "down*"
	case n.State == "suspect":
		return baseState(n) + "*"
	case n.State != "up" && n.Jobs > 0:
		return "draining"
	case n.State != "up":
		return "drained"
	}
	return baseState(n)
}

func baseState(n *api.Node) string {
	switch {
	case n.Jobs == 0:
		return "idle"
	case n.CPUs.Free == 0:
		return "allocated"
	}
	return "mixed"
}

// shortNodeStates are the short words of node states.
var shortNodeStates = map[string]string{"down": "down", "draining": "drng", "drained": "drain", "idle": "idle", "allocated": "alloc", "mixed": "mix"}

// nodeStates are the words that sinfo -t takes. Slurm has more states than nodes
// have here; scripts that ask for those get a list without nodes, as on a cluster
// where no node is in them.
var nodeStates = []string{
	"all", "unknown", "down", "idle", "allocated", "mixed", "future", "drain", "drained", "draining", "drng", "no_respond", "reserved", "resv", "perfctrs", "npc", "cloud",
	"completing", "powering_down", "powered_down", "power_down", "powering_up", "fail", "maint", "reboot", "reboot^", "boot", "?", "planned", "plnd", "futr",
}

func shortNodeState(state string) string {
	base, silent := strings.CutSuffix(state, "*")
	return shortNodeStates[base] + pick(silent, "*", "")
}

// longNodeState is as scontrol has it: IDLE+DRAIN.
func longNodeState(n *api.Node) string {
	state := nodeState(n)
	if base := strings.TrimSuffix(state, "*"); base == "drained" || base == "draining" {
		return strings.ToUpper(baseState(n)) + "+DRAIN" + map[string]string{"pending": "+REBOOT_REQUESTED", "sent": "+REBOOT_ISSUED"}[n.Reboot]
	}
	return strings.ToUpper(state)
}

// models are the GPUs of a node by model, in Slurm's spelling.
func models(n *api.Node) (names []string, gpus map[string][]api.GPU) {
	gpus = map[string][]api.GPU{}
	for _, g := range n.GPUs {
		name := strings.ToLower(strings.NewReplacer(" ", "_", ",", "_", ":", "_", "(", "", ")", "").Replace(g.Model))
		if gpus[name] == nil {
			names = append(names, name)
		}
		gpus[name] = append(gpus[name], g)
	}
	slices.Sort(names)
	return names, gpus
}

// gres is what GPUs a node has; empty: none.
func gres(n *api.Node) string {
	var out []string
	names, gpus := models(n)
	for _, name := range names {
		out = append(out, fmt.Sprintf("gpu:%s:%d", name, len(gpus[name])))
	}
	return strings.Join(out, ",")
}

// gresUsed is what of them jobs have.
func gresUsed(n *api.Node) string {
	var out []string
	names, gpus := models(n)
	for _, name := range names {
		used := indexes.Set(nil)
		for _, g := range gpus[name] {
			if g.FreeMilli < 1000 {
				used = used.With(g.Index)
			}
		}
		index := "N/A"
		if used.Len() > 0 {
			index = used.String()
		}
		out = append(out, fmt.Sprintf("gpu:%s:%d(IDX:%s)", name, used.Len(), index))
	}
	return cmp.Or(strings.Join(out, ","), "gpu:0")
}

// gpusUsed is how many GPUs jobs have.
func gpusUsed(n *api.Node) (used float64) {
	for _, g := range n.GPUs {
		used += float64(1000-g.FreeMilli) / 1000
	}
	return used
}

// nodeTRES is what a node has, and what of it jobs have.
func nodeTRES(n *api.Node) (has, used string) {
	has = fmt.Sprintf("cpu=%d,mem=%dM,billing=%d", n.CPUs.Total, n.MemBytes.Total>>20, n.CPUs.Total)
	if len(n.GPUs) > 0 {
		has += fmt.Sprintf(",gres/gpu=%d", len(n.GPUs))
	}
	if cpus, mem := n.CPUs.Total-n.CPUs.Free, n.MemBytes.Total-n.MemBytes.Free; cpus > 0 || mem > 0 {
		used = fmt.Sprintf("cpu=%d,mem=%dM", cpus, mem>>20)
	}
	if g := gpusUsed(n); g > 0 {
		used += ",gres/gpu=" + strconv.FormatFloat(g, 'f', -1, 64)
	}
	return has, strings.TrimPrefix(used, ",")
}

// nodeJSON is a node as sinfo and scontrol write it.
func nodeJSON(n *api.Node) object {
	has, used := nodeTRES(n)
	state := strings.TrimSuffix(nodeState(n), "*")
	flags := []string{}
	if state == "drained" || state == "draining" {
		state, flags = baseState(n), append(flags, "DRAIN")
	}
	if strings.HasSuffix(nodeState(n), "*") {
		flags = append(flags, "NOT_RESPONDING")
	}
	return object{
		"name": n.Name, "hostname": n.Hostname, "address": n.Hostname, "port": 0, "architecture": "", "operating_system": "", "slurmd_version": n.Version, "slurmd_start_time": 0, "boot_time": 0,
		"state": state, "state_flags": flags, "reason": n.Reason, "reason_changed_at": 0, "reason_set_by_user": nil, "next_state_after_reboot": "invalid", "next_state_after_reboot_flags": []string{},
		"cpus": n.CPUs.Total, "alloc_cpus": n.CPUs.Total - n.CPUs.Free, "idle_cpus": n.CPUs.Free, "boards": 1, "sockets": 1, "cores": n.CPUs.Total, "threads": 1, "cpu_load": nil, "cpu_binding": 0,
		"real_memory": n.MemBytes.Total >> 20, "alloc_memory": (n.MemBytes.Total - n.MemBytes.Free) >> 20, "free_memory": nil, "temporary_disk": 0, "weight": 1,
		"gres": gres(n), "gres_used": gresUsed(n), "gres_drained": "N/A", "features": strings.Join(n.Features, ","), "active_features": strings.Join(n.Features, ","),
		"partitions": partitionsOf(n), "tres": has, "tres_used": used, "owner": nil, "comment": "", "extra": "", "mcs_label": "", "last_busy": 0, "burstbuffer_network_address": "",
	}
}
