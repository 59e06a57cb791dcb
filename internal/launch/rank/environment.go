package rank

import (
	"maps"
	"slices"
	"strings"

	"gbatch/internal/job/nodelist"
	"gbatch/internal/job/words"
	"gbatch/internal/launch/pmix"
)

// ownPrefixes are the variables that each container has its own of: a task has
// those of where it runs, whatever srun has.
var ownPrefixes = []string{"GBATCH_", "GPULAB_", "NVIDIA_VISIBLE_DEVICES=", "CUDA_DEVICE_ORDER=", "HOSTNAME="}

// environment is what a task has: srun's variables, those of the container where
// it runs, and Slurm's for the task.
func (g *group) environment(t *task) []string {
	set := map[string]string{}
	add := func(list []string, only func(kv string) bool) {
		for _, kv := range list {
			if name, value, ok := strings.Cut(kv, "="); ok && (only == nil || only(kv)) {
				set[name] = value
			}
		}
	}
	own := func(kv string) bool {
		return slices.ContainsFunc(ownPrefixes, func(p string) bool { return strings.HasPrefix(kv, p) })
	}
	if g.order.OwnEnv {
		add(g.s.env, func(kv string) bool { return !strings.HasPrefix(kv, "SLURM_") })
	}
	add(g.order.Env, nil)
	add(g.s.env, own)
	g.ofImage(set)
	for _, name := range pmix.Names { // of the step in which srun is a task
		delete(set, name)
	}
	if g.pmix != nil {
		maps.Copy(set, g.pmix.Env(t.ID))
	}
	maps.Copy(set, g.slurm(t))
	env := make([]string, 0, len(set))
	for _, name := range slices.Sorted(maps.Keys(set)) {
		env = append(env, name+"="+set[name])
	}
	return env
}

// ofLocale are variables of a step's own that mean nothing in another image.
var ofLocale = []string{"LANG", "LANGUAGE", "LC_ALL"}

// ofImage has the variables of a container's image win over those of srun, but for some
// that srun names.
func (g *group) ofImage(set map[string]string) {
	if !g.s.inside {
		return
	}
	for _, name := range ofLocale {
		if !slices.Contains(g.order.Over, name) {
			delete(set, name)
		}
	}
	for _, kv := range g.s.env {
		name, value, _ := strings.Cut(kv, "=")
		if slices.Contains(g.s.image, name) && !slices.Contains(g.order.Over, name) {
			set[name] = value
		}
	}
}

// slurm are the variables by which a task finds out which it is.
func (g *group) slurm(t *task) map[string]string {
	l, i := g.order.Layout, g.s.info
	number, step, nodes := itoa(int(i.Job)), itoa(int(l.Step)), itoa(len(l.Placed))
	var names []string
	var counts []int
	for _, at := range l.Placed {
		names, counts = append(names, i.Nodes[at.Rank].Name), append(counts, len(at.Tasks))
	}
	list, perNode := nodelist.Format(names), nodelist.Repeats(counts)
	var ids []string
	for _, other := range g.placed.Tasks {
		ids = append(ids, itoa(other.ID))
	}
	set := map[string]string{
		"SLURM_JOB_ID": number, "SLURM_JOBID": number, "SLURM_STEP_ID": step, "SLURM_STEPID": step,
		"SLURM_PROCID": itoa(t.ID), "SLURM_LOCALID": itoa(t.Local), "SLURM_NODEID": itoa(g.order.Own), "SLURM_GTIDS": strings.Join(ids, ","),
		"SLURM_NTASKS": itoa(l.Tasks), "SLURM_NPROCS": itoa(l.Tasks), "SLURM_STEP_NUM_TASKS": itoa(l.Tasks),
		"SLURM_NNODES": nodes, "SLURM_STEP_NUM_NODES": nodes, "SLURM_STEP_NODELIST": list, "SLURM_NODELIST": list,
		"SLURM_TASKS_PER_NODE": perNode, "SLURM_STEP_TASKS_PER_NODE": perNode,
		"SLURMD_NODENAME": i.Own().Name, "SLURM_CPUS_ON_NODE": itoa(i.Own().CPUs),
		"SLURM_JOB_NODELIST": nodelist.Format(i.Names()), "SLURM_JOB_NUM_NODES": itoa(len(i.Nodes)),
		"SLURM_UMASK": umaskText(g.order.Umask), "SLURM_TOPOLOGY_ADDR": i.Own().Name, "SLURM_TOPOLOGY_ADDR_PATTERN": "node",
	}
	maps.Copy(set, g.order.Extra)
	var gpus, real []string
	for _, k := range t.GPUs {
		if k < len(i.GPUs) {
			gpus = append(gpus, i.GPUs[k])
		}
		if k < len(i.GPUIDs) {
			real = append(real, itoa(i.GPUIDs[k]))
		}
	}
	if len(gpus) > 0 || t.NoGPU {
		set["CUDA_VISIBLE_DEVICES"], set["SLURM_STEP_GPUS"] = strings.Join(gpus, ","), strings.Join(real, ",")
	}
	return set
}

func umaskText(mask int) string {
	text := "000" + octal(mask)
	return text[len(text)-4:]
}

func octal(n int) string {
	if n < 8 {
		return itoa(n)
	}
	return octal(n/8) + itoa(n%8)
}

// taskWords splits the line of a program for one task: %t is its number, and so is
// %o, the place in its line, where that is for all tasks that none is named for.
func taskWords(line string, id int) ([]string, error) {
	list, err := words.Split(line)
	for k := range list {
		list[k] = strings.NewReplacer("%t", itoa(id), "%o", itoa(id)).Replace(list[k])
	}
	return list, err
}
