package slurm

import (
	"fmt"
	"strings"

	"gbatch/internal/job"
	"gbatch/internal/job/sizes"
)

// defaultMemoryPerCore is what a script gets that says nothing of memory, MiB.
const defaultMemoryPerCore = 4 << 10

// amounts decides what each node gives, by Slurm's arithmetic: the options
// speak of tasks, cores, GPUs and the whole job.
func (s *script) amounts() {
	r, g := &s.spec.Request.Resources, s.spec.Gbatch
	countNodes(s)
	s.spread()
	gpus := s.gpuCount()
	if s.nodes > 1 {
		g.Nodes = s.nodes
	}
	perNode := s.tasksOnNode(gpus.Count)
	cores := perNode * max(s.cpusPerTask, 1)
	if s.cpusPerGPU > 0 {
		if s.cpusPerTask > 0 {
			s.problem(0, "--cpus-per-gpu", "cannot be combined with --cpus-per-task", "keep one of them")
		}
		cores = max(cores, s.cpusPerGPU*gpus.Count)
	}
	if s.perSocket && s.tasks == 0 && s.tasksPerNode < 0 {
		s.problem(0, "--ntasks-per-socket", "says how many tasks there are by the node's sockets, which are not known before it is chosen", "give --ntasks or --ntasks-per-node")
	}
	cores = max(cores, s.minCPUs)
	if s.pack && s.nodes > 1 {
		s.problem(0, "--distribution", "fills one node after the other, and tasks are shared out evenly here", "give plane=NUMBER, with the tasks that a node is to be filled with")
	}
	r.CPUs, r.GPUs = cores, float64(gpus.Count)
	if gpus.Model != "" {
		r.GPUModel = []string{gpus.Model}
	}
	tasks := s.tasks
	if tasks == 0 && s.tasksPerGPU > 0 {
		tasks = s.tasksPerGPU * gpus.Count * s.nodes
	}
	g.Launch = &job.Launch{Tasks: tasks, PerNode: max(s.tasksPerNode, 0), CPUsPerTask: s.cpusPerTask, GPUsPerTask: s.gpusPerTask.Count}
	s.memory(cores, gpus.Count)
	if list := g.NodeNames; len(list) > 0 && len(list) < s.nodes {
		s.problem(0, "--nodelist", fmt.Sprintf("names %d nodes, and the job needs %d", len(list), s.nodes), "name more, or remove it")
	} else if len(list) > s.nodes {
		s.note(0, "--nodelist", fmt.Sprintf("names %d nodes, of which the job gets any %d", len(list), s.nodes))
	}
}

// countNodes decides how many nodes a job has of those that --nodes allows, by how many
// its tasks need and can be on.
func countNodes(s *script) {
	if !s.nodesGiven {
		return
	}
	least := s.nodes
	if s.tasks > 0 && s.tasksPerNode > 0 {
		s.nodes = max(s.nodes, (s.tasks+s.tasksPerNode-1)/s.tasksPerNode)
	}
	switch {
	case s.nodes > s.mostNodes:
		s.problem(0, "--ntasks", fmt.Sprintf("%d tasks with %d on a node need %d nodes, and --nodes allows %d: sbatch refuses that too", s.tasks, s.tasksPerNode, s.nodes, s.mostNodes), "make these three agree")
		s.nodes = least
	case s.tasks > 0 && s.tasks < s.nodes:
		s.note(0, "--nodes", fmt.Sprintf("is %d, and with %d tasks the job gets %[2]d, as with sbatch", s.nodes, s.tasks))
		s.nodes = s.tasks
	case s.mostNodes > least:
		s.note(0, "--nodes", fmt.Sprintf("is a range, of which the least that will do is used: %d", s.nodes))
	}
}

// mayBeWide is how many cores any node is thought to have: the site is not asked for less.
const mayBeWide = 8

// spread takes as many nodes as the tasks need, where no node has the cores for all of
// them and the script does not say how many nodes it wants.
func (s *script) spread() {
	each := max(s.cpusPerTask, 1)
	free := !s.nodesGiven && s.tasksPerNode < 0 && !s.gpus.given && !s.gpusPerNode.given && !s.gpusPerTask.given && len(s.spec.Gbatch.NodeNames) == 0
	if !free || s.o.Widest == nil || s.tasks < 2 || s.tasks*each <= mayBeWide {
		return
	}
	if widest := s.o.Widest(s.spec.Gbatch.Partitions); widest >= each && s.tasks*each > widest {
		fit := widest / each
		s.nodes = min((s.tasks+fit-1)/fit, maxNodes)
		s.note(0, "--ntasks", fmt.Sprintf("%d tasks are placed on %d nodes, as no node has more than %d cores", s.tasks, s.nodes, widest))
	}
}

// tasksOnNode is the tasks that one node has room for.
func (s *script) tasksOnNode(gpus int) int {
	switch {
	case s.tasksPerNode > 0 && s.tasks > 0 && s.tasks > s.tasksPerNode*s.nodes && s.nodes == 1:
		s.nodes = (s.tasks + s.tasksPerNode - 1) / s.tasksPerNode
		s.spec.Gbatch.Nodes = s.nodes
		return s.tasksPerNode
	case s.tasksPerNode > 0:
		return s.tasksPerNode
	case s.tasks > 0:
		if s.nodes == 1 && s.tasks > 1 {
			s.note(0, "--ntasks", fmt.Sprintf("%d tasks are placed on one node; for several nodes give --nodes", s.tasks))
		}
		return (s.tasks + s.nodes - 1) / s.nodes
	case s.tasksPerGPU > 0 && gpus > 0:
		return s.tasksPerGPU * gpus
	}
	return 1
}

func (s *script) memory(cores, gpus int) {
	r := &s.spec.Request.Resources
	var ways []string
	var mib int64
	if s.mem >= 0 {
		ways, mib = append(ways, "--mem"), s.mem
	}
	if s.memPerCPU >= 0 {
		ways, mib = append(ways, "--mem-per-cpu"), s.memPerCPU*int64(cores)
	}
	if s.memPerGPU >= 0 {
		ways, mib = append(ways, "--mem-per-gpu"), s.memPerGPU*int64(gpus)
	}
	switch {
	case len(ways) > 1:
		s.problem(0, ways[1], "cannot be combined with "+ways[0], "keep one of "+strings.Join(ways, ", "))
	case len(ways) == 0 && s.spec.Gbatch.Exclusive: // all that there is
	case len(ways) == 0:
		mib = defaultMemoryPerCore * int64(cores)
		s.spec.Gbatch.MemoryByDefault = true
		s.note(0, "--mem", fmt.Sprintf("is not given: %d GiB for each core, where the partition has no default of its own", defaultMemoryPerCore>>10))
	case s.memPerGPU > 0 && gpus == 0:
		s.problem(0, "--mem-per-gpu", "is given without GPUs", "give --mem, or --gpus")
	case mib == 0:
		s.spec.Gbatch.AllMemory = true
	case mib%1024 != 0:
		s.note(0, ways[0], fmt.Sprintf("is rounded up to %d GiB", sizes.GiB(mib)))
	}
	if mib > 0 && s.spec.Gbatch.Exclusive {
		s.note(0, ways[0], "is the least that each node has: with --exclusive the job gets all of it")
	}
	r.CPUMemoryGB = max(sizes.GiB(mib), 1)
}
