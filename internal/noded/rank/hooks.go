package rank

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"gbatch/internal/job/nodelist"
	"gbatch/internal/node"
	"gbatch/internal/noded/cores"
	"gbatch/internal/noded/hooks"
)

// prolog runs what the site wants to be run before a rank. It has its cores then,
// and nothing of its storage is mounted.
func prolog(ctx context.Context, who facts, s *state) error {
	h := who.node.Hooks
	if len(h.Prolog) == 0 {
		return nil
	}
	s.setProgress("the site's prolog runs")
	defer s.setProgress("")
	return h.Before(ctx, who.rank())
}

// epilog runs what the site wants to be run after one. False means that the daemon
// is going.
func epilog(ctx context.Context, who facts, s *state, out *node.Exit) bool {
	h := who.node.Hooks
	if h.Due(who.order.id, who.order.UUID, out) {
		s.setProgress("the site's epilog runs")
	}
	return h.After(ctx, who.rank(), out)
}

// facts tell the site's programs of a rank, in our words and in Slurm's where those
// mean the same. Nothing that a user writes freely is among them.
type facts struct {
	node  *Node
	order *order
	cores cores.Grant
}

func (f facts) rank() hooks.Rank {
	return hooks.Rank{ID: f.order.id, UUID: f.order.UUID, Facts: f.list}
}

func (f facts) list() []string {
	o, n := f.order, f.node
	bound := joinInts(f.cores.CPUs.List()) // empty: none is bound to it
	list := []string{
		"GBATCH_JOB_ID=" + strconv.FormatUint(uint64(o.id.Job), 10),
		"GBATCH_JOB_UUID=" + o.UUID,
		"GBATCH_TASK=" + strconv.FormatUint(uint64(o.id.Task), 10),
		"GBATCH_ATTEMPT=" + strconv.FormatUint(uint64(o.id.Attempt), 10),
		"GBATCH_RANK=" + strconv.FormatUint(uint64(o.id.Rank), 10),
		"GBATCH_RANKS=" + strconv.Itoa(o.Ranks),
		"GBATCH_USER=" + o.User,
		"GBATCH_PROJECT=" + o.Project,
		"GBATCH_NODE=" + n.Config.Name,
		"GBATCH_NODES=" + strings.Join(o.nodes(n.Config.Name), ","),
		"GBATCH_CLUSTER=" + strconv.Itoa(n.Config.ClusterID),
		"GBATCH_PARTITION=" + o.Partition,
		"GBATCH_CPUS=" + strconv.Itoa(o.Allocation.CPUs),
		"GBATCH_CORES=" + bound,
		"GBATCH_MEMORY_MB=" + strconv.FormatInt(o.Allocation.MemBytes>>20, 10),
		"GBATCH_GPUS=" + strings.Join(o.gpus(), ","),
		"GBATCH_RANK_DIR=" + o.dir,
		"GBATCH_SCRATCH_DIR=" + n.Disk.Scratch(o.at),
		"SLURM_CLUSTER_NAME=gbatch",
		"SLURM_JOB_ID=" + strconv.FormatUint(uint64(o.id.Job), 10),
		"SLURM_JOBID=" + strconv.FormatUint(uint64(o.id.Job), 10),
		"SLURM_JOB_USER=" + o.User,
		"SLURM_JOB_ACCOUNT=" + o.Project,
		"SLURM_JOB_PARTITION=" + cmp.Or(o.Partition, strconv.Itoa(n.Config.ClusterID)),
		"SLURM_JOB_NODELIST=" + nodelist.Format(o.nodes(n.Config.Name)),
		"SLURM_NODELIST=" + nodelist.Format(o.nodes(n.Config.Name)),
		"SLURM_NODEID=" + strconv.FormatUint(uint64(o.id.Rank), 10),
		"SLURM_CPUS_ON_NODE=" + strconv.Itoa(o.Allocation.CPUs),
		"SLURMD_NODENAME=" + n.Config.Name,
		"SLURM_RESTART_COUNT=" + strconv.Itoa(o.Restarts+int(o.id.Attempt)-1),
	}
	if who, err := n.owner(o); err == nil {
		uid, gid := strconv.FormatUint(uint64(who.UID), 10), strconv.FormatUint(uint64(who.GID), 10)
		list = append(list, "GBATCH_UID="+uid, "GBATCH_GID="+gid, "SLURM_JOB_UID="+uid, "SLURM_JOB_GID="+gid)
	}
	return append(list, f.gpus()...)
}

// gpus name the rank's GPUs as programs outside of the container know them:
// by the numbers that the driver's tools have, or instances of them by UUID.
func (f facts) gpus() []string {
	ids := f.order.gpus()
	switch {
	case len(ids) == 0:
		return nil
	case slices.ContainsFunc(ids, func(id string) bool { return strings.HasPrefix(id, "MIG-") }):
		return []string{"CUDA_VISIBLE_DEVICES=" + strings.Join(ids, ",")}
	}
	numbers := joinInts(f.node.Devices.Indexes(ids))
	list := []string{"CUDA_VISIBLE_DEVICES=" + numbers, "SLURM_JOB_GPUS=" + numbers, "SLURM_GPUS_ON_NODE=" + strconv.Itoa(len(ids))}
	if f.node.Devices.Inventory().Simulated {
		list = append(list, "GBATCH_SIMULATED_GPUS=1")
	}
	return list
}

// nodes are those of the rank's gang, in rank order.
func (o *order) nodes(own string) []string {
	if len(o.Peers) == 0 {
		return []string{own}
	}
	var list []string
	for _, p := range o.Peers {
		list = append(list, p.Node)
	}
	return list
}

func joinInts(list []int) string {
	var words []string
	for _, n := range list {
		words = append(words, strconv.Itoa(n))
	}
	return strings.Join(words, ",")
}
