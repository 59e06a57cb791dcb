package counts

import (
	"slices"
	"strconv"

	"gbatch/internal/ctld/meter"
	"gbatch/internal/ctld/site"
	"gbatch/internal/metrics"
	"gbatch/internal/state"
)

// slurmCounts are the figures of jobs, for all, a user, a project.
var slurmCounts = []struct {
	suffix, help string
	of           func(*totals) int64
}{
	{"", "Jobs in memory.", func(h *totals) int64 { return int64(h.live() + h.finalJobs) }},
	{"_pending", "Jobs that wait, held ones too.", func(h *totals) int64 { return int64(h.jobs[isHeld] + h.jobs[isQueued]) }},
	{"_hold", "Jobs that are held.", func(h *totals) int64 { return int64(h.jobs[isHeld]) }},
	{"_configuring", "Jobs whose containers are being started.", func(h *totals) int64 { return int64(h.jobs[isStarting]) }},
	{"_running", "Jobs that run.", func(h *totals) int64 { return int64(h.jobs[isRunning]) }},
	{"_suspended", "Jobs that are paused.", func(h *totals) int64 { return int64(h.jobs[isPaused]) }},
	{"_completing", "Jobs that are being ended.", func(h *totals) int64 { return int64(h.jobs[isEnding]) }},
	{"_completed", "Jobs that finished.", ended(meter.EndedWell)},
	{"_cancelled", "Jobs that were cancelled.", ended(meter.EndedCancelled)},
	{"_timeout", "Jobs that reached their time limit.", ended(meter.EndedTimeout)},
	{"_deadline", "Jobs that could not start in time.", ended(meter.EndedDeadline)},
	{"_preempted", "Jobs that were halted for others.", ended(meter.EndedPreempted)},
	{"_node_failed", "Jobs whose node failed.", ended(meter.EndedNodeFail)},
	{"_outofmemory", "Jobs that ran out of memory.", ended(meter.EndedOOM)},
	{"_failed", "Jobs that failed in another way.", ended(meter.EndedFailed)},
	{"_finished", "Jobs that are over.", func(h *totals) int64 { return int64(h.finalJobs) }},
	{"_cpus_alloc", "CPUs that jobs hold.", func(h *totals) int64 { return (h.milliCPU + 999) / 1000 }},
	{"_gpus_alloc", "GPUs that jobs hold.", func(h *totals) int64 { return (h.milliGPU + 999) / 1000 }},
	{"_memory_alloc", "Memory that jobs hold, in bytes.", func(h *totals) int64 { return h.memMiB << 20 }},
	{"_nodes_alloc", "Nodes that jobs hold, one for each of their containers.", func(h *totals) int64 { return int64(h.nodes) }},
}

func ended(how meter.Ending) func(*totals) int64 {
	return func(h *totals) int64 { return int64(h.endings[how]) }
}

func (h *totals) live() int {
	n := 0
	for _, k := range h.jobs {
		n += k
	}
	return n
}

// slurmNodeStates are the states of nodes. A node is in one of the first four,
// and may be in others besides.
var slurmNodeStates = []struct {
	name, help string
	is         func(slurmNode) bool
}{
	{"alloc", "Nodes that are full.", func(n slurmNode) bool { return n.up() && n.full() }},
	{"mixed", "Nodes of which a part is taken.", func(n slurmNode) bool { return n.up() && n.busy() && !n.full() }},
	{"idle", "Nodes on which nothing runs.", func(n slurmNode) bool { return n.up() && !n.busy() }},
	{"down", "Nodes that are lost or unhealthy.", func(n slurmNode) bool { return n.state == "lost" || n.state == "unhealthy" }},
	{"drain", "Nodes that an operator took out of scheduling.", func(n slurmNode) bool { return n.out() }},
	{"draining", "Nodes of those on which jobs run still.", func(n slurmNode) bool { return n.out() && n.busy() }},
	{"drained", "Nodes of those on which nothing runs.", func(n slurmNode) bool { return n.out() && !n.busy() }},
	{"noresp", "Nodes that are silent.", func(n slurmNode) bool { return n.state == "suspect" || n.state == "lost" }},
}

// slurmNode is a node with what is taken of it.
type slurmNode struct {
	*state.Node
	state                      string
	milliCPU, milliGPU, memMiB int64
}

func (n slurmNode) up() bool   { return n.state == "up" || n.state == "suspect" }
func (n slurmNode) out() bool  { return n.state == "drained" || n.state == "rebooting" }
func (n slurmNode) busy() bool { return len(n.Jobs) > 0 }

// full says that no job with a core and, where there are any, a GPU fits.
func (n slurmNode) full() bool {
	return n.milliCPU >= int64(n.Inventory.CPUs)*1000 || len(n.Inventory.GPUs) > 0 && n.milliGPU >= int64(len(n.Inventory.GPUs))*1000
}

func slurmNodeOf(v *state.View, n *state.Node) slurmNode {
	out := slurmNode{Node: n}
	out.state, _ = n.State()
	for _, num := range n.Jobs {
		for _, r := range v.Job(num).Attempt.Ranks {
			if r.Alloc.Node == n.Name {
				out.milliCPU, out.milliGPU, out.memMiB = out.milliCPU+r.Alloc.MilliCPU, out.milliGPU+r.Alloc.MilliGPU(), out.memMiB+r.Alloc.MemMiB
			}
		}
	}
	return out
}

// slurmOfNode are the figures of one node, and summed up those of its cluster.
var slurmOfNode = []struct {
	node, partition, help string
	of                    func(slurmNode) int64
}{
	{"cpus", "nodes_cpus_efctv", "CPUs for jobs.", func(n slurmNode) int64 { return int64(n.Inventory.CPUs) }},
	{"cpus_alloc", "nodes_cpus_alloc", "CPUs that jobs hold.", func(n slurmNode) int64 { return (n.milliCPU + 999) / 1000 }},
	{"cpus_idle", "nodes_cpus_idle", "CPUs that nobody holds.", func(n slurmNode) int64 { return int64(n.Inventory.CPUs) - (n.milliCPU+999)/1000 }},
	{"gpus", "gpus", "GPUs.", func(n slurmNode) int64 { return int64(len(n.Inventory.GPUs)) }},
	{"gpus_alloc", "", "GPUs that jobs hold.", func(n slurmNode) int64 { return (n.milliGPU + 999) / 1000 }},
	{"memory_bytes", "nodes_mem_tot", "Memory for jobs, in bytes.", func(n slurmNode) int64 { return n.Inventory.MemBytes }},
	{"memory_alloc_bytes", "nodes_mem_alloc", "Memory that jobs hold, in bytes.", func(n slurmNode) int64 { return n.memMiB << 20 }},
	{"memory_free_bytes", "nodes_mem_free", "Memory that nobody holds, in bytes.", func(n slurmNode) int64 { return n.Inventory.MemBytes - n.memMiB<<20 }},
}

// slurmCycles are the figures of sdiag.
var slurmCycles = []struct {
	name, help string
	of         func(*meter.Cycles) int64
}{
	{"schedule_cycle_cnt", "Scheduling rounds.", func(c *meter.Cycles) int64 { return c.Count.Load() }},
	{"schedule_cycle_last", "Time of the last round, in microseconds.", func(c *meter.Cycles) int64 { return c.Last.Load() }},
	{"schedule_cycle_max", "Time of the longest round, in microseconds.", func(c *meter.Cycles) int64 { return c.Longest.Load() }},
	{"schedule_cycle_tot", "Time of all rounds, in microseconds.", func(c *meter.Cycles) int64 { return c.Sum.Load() }},
	{"sched_mean_cycle", "Mean time of a round, in microseconds.", func(c *meter.Cycles) int64 { return c.Sum.Load() / max(c.Count.Load(), 1) }},
	{"sched_mean_depth_cycle", "Mean number of jobs that a round looked at.", func(c *meter.Cycles) int64 { return c.Depth.Load() / max(c.Count.Load(), 1) }},
	{"backfilled_jobs", "Jobs that started past one with a reservation.", func(c *meter.Cycles) int64 { return c.Backfilled.Load() }},
	{"sdiag_jobs_submitted", "Jobs that were submitted.", func(c *meter.Cycles) int64 { return c.Submitted.Load() }},
	{"sdiag_jobs_started", "Jobs that were started.", func(c *meter.Cycles) int64 { return c.Starts.Load() }},
	{"sdiag_jobs_completed", "Jobs that finished.", func(c *meter.Cycles) int64 { return c.Ended(meter.EndedWell) }},
	{"sdiag_jobs_canceled", "Jobs that were cancelled.", func(c *meter.Cycles) int64 { return c.Ended(meter.EndedCancelled) }},
	{"sdiag_jobs_failed", "Jobs that failed.", func(c *meter.Cycles) int64 {
		return c.Ended(meter.EndedTimeout, meter.EndedDeadline, meter.EndedNodeFail, meter.EndedOOM, meter.EndedFailed)
	}},
}

// maxSlurmNodes bounds the nodes that have series of their own.
const maxSlurmNodes = 2000

// slurmCollector is the census under Slurm's names. It is always registered and
// says nothing unless the configuration asks for it.
func (s *Exporter) slurmCollector() *metrics.Collector {
	c := &metrics.Collector{Families: slurmFamilies()}
	f := map[string]metrics.Family{}
	for _, family := range c.Families {
		f[family.Name] = family
	}
	c.Read = func(set *metrics.Set) {
		if slices.Contains(s.Aliases(), site.SlurmNames) {
			slurmRead(set, f, s.census.now(s.Loop.View()))
			for _, k := range slurmCycles {
				set.Add(f["slurm_"+k.name], float64(k.of(&s.Meters.Cycles)))
			}
		}
	}
	return c
}

func slurmFamilies() []metrics.Family {
	var out []metrics.Family
	add := func(name, help string, labels ...string) { out = append(out, metrics.Gauge(name, help, labels...)) }
	for _, k := range slurmCounts {
		add("slurm_jobs"+k.suffix, k.help)
		add("slurm_user_jobs"+k.suffix, k.help, "username")
		add("slurm_account_jobs"+k.suffix, k.help, "account")
		add("slurm_partition_jobs"+k.suffix, k.help, "partition")
	}
	add("slurm_nodes", "Nodes.")
	add("slurm_partitions", "Clusters.")
	add("slurm_partition_nodes", "Nodes.", "partition")
	for _, k := range slurmNodeStates {
		add("slurm_nodes_"+k.name, k.help)
		add("slurm_partition_nodes_"+k.name, k.help, "partition")
	}
	for _, k := range slurmOfNode {
		add("slurm_node_"+k.node, k.help, "node")
		if k.partition != "" {
			add("slurm_partition_"+k.partition, k.help, "partition")
		}
	}
	for _, k := range slurmCycles {
		add("slurm_"+k.name, k.help)
	}
	add("slurm_schedule_queue_len", "Jobs that the last scheduling round saw waiting.")
	add("slurm_schedule_cycle_depth", "Jobs that the last scheduling round looked at.")
	return out
}

func slurmRead(set *metrics.Set, f map[string]metrics.Family, c *Counts) {
	for _, k := range slurmCounts {
		set.Add(f["slurm_jobs"+k.suffix], float64(k.of(&c.all)))
	}
	c.users.slurmRead(set, f, "slurm_user_jobs", meter.MaxUsers)
	c.projects.slurmRead(set, f, "slurm_account_jobs", meter.MaxProjects)
	c.clusters.slurmRead(set, f, "slurm_partition_jobs", meter.MaxClusters)
	clusters := map[string]bool{}
	i := 0
	for node := range c.view.Nodes.All() {
		n := slurmNodeOf(c.view, node)
		cluster := strconv.Itoa(n.Inventory.Cluster)
		clusters[cluster] = true
		set.Add(f["slurm_nodes"], 1)
		set.Add(f["slurm_partition_nodes"], 1, cluster)
		for _, k := range slurmNodeStates {
			is := 0.0
			if k.is(n) {
				is = 1
			}
			set.Add(f["slurm_nodes_"+k.name], is)
			set.Add(f["slurm_partition_nodes_"+k.name], is, cluster)
		}
		for _, k := range slurmOfNode {
			if i < maxSlurmNodes {
				set.Add(f["slurm_node_"+k.node], float64(k.of(n)), n.Name)
			}
			if k.partition != "" {
				set.Add(f["slurm_partition_"+k.partition], float64(k.of(n)), cluster)
			}
		}
		i++
	}
	set.Add(f["slurm_partitions"], float64(len(clusters)))
	if p := c.view.Plan; p != nil {
		set.Add(f["slurm_schedule_queue_len"], float64(p.Stats.Waiting))
		set.Add(f["slurm_schedule_cycle_depth"], float64(p.Stats.Evaluated))
	}
}

func (by holders) slurmRead(set *metrics.Set, f map[string]metrics.Family, prefix string, most int) {
	weight := map[string]float64{}
	for name, h := range by {
		weight[name] = h.weight()
	}
	label := metrics.Top(weight, most)
	for name, h := range by {
		for _, k := range slurmCounts {
			set.Add(f[prefix+k.suffix], float64(k.of(h)), label(name))
		}
	}
}
