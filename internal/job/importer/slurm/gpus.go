package slurm

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gbatch/internal/document"
	"gbatch/internal/job/sizes"
)

// gpuCount is the GPUs of one node. Options that say it in several ways must agree, and
// may say by that how many nodes and tasks there are, as in Slurm.
func (s *script) gpuCount() GPUs {
	node, task := s.gpusPerNode, s.gpusPerTask
	if s.gpus.given {
		s.shareGPUs()
	}
	if node.given && task.given {
		s.tasksByGPUs()
	}
	switch {
	case node.given:
		node.Model = s.gpuModel()
		return node
	case s.gpus.given:
		if s.gpus.Count%s.nodes != 0 {
			s.problem(0, "--gpus", fmt.Sprintf("is %d, which cannot be shared out evenly over %d nodes", s.gpus.Count, s.nodes), "give --gpus-per-node")
		}
		return GPUs{Count: s.gpus.Count / s.nodes, Model: s.gpuModel(), given: true}
	case task.given:
		task.Count *= s.tasksOnNode(0)
		return task
	case s.tasksPerGPU > 0 && s.tasks > 0:
		each := s.tasksPerGPU * s.nodes
		return GPUs{Count: (s.tasks + each - 1) / each}
	}
	return GPUs{}
}

// gpuModel is the one model that the options name.
func (s *script) gpuModel() string {
	model := ""
	for _, g := range []GPUs{s.gpus, s.gpusPerNode, s.gpusPerTask} {
		if g.Model != "" && model != "" && g.Model != model {
			s.problem(0, "--gpus", "is given for two models: all GPUs of a job are alike", "name one")
		}
		if g.given && g.Model != "" {
			model = g.Model
		}
	}
	return model
}

// shareGPUs follows what the GPUs of the whole job and those of a node or a task say together.
func (s *script) shareGPUs() {
	all := s.gpus.Count
	if per := s.gpusPerNode.Count; s.gpusPerNode.given {
		switch {
		case per == 0 && all == 0:
		case per == 0 || all%per != 0 || all == 0:
			s.problem(0, "--gpus", fmt.Sprintf("is %d, which is no multiple of the %d of each node", all, per), "keep one of --gpus and --gpus-per-node")
		case s.nodesGiven && s.nodes != all/per:
			s.problem(0, "--gpus", fmt.Sprintf("is %d with %d of each node, which are %d nodes and not %d", all, per, all/per, s.nodes), "keep one of --gpus and --gpus-per-node")
		default:
			s.nodes = min(all/per, maxNodes)
		}
	}
	if per := s.gpusPerTask.Count; s.gpusPerTask.given && per > 0 {
		switch n := all / per; {
		case all%per != 0 || s.tasks > 0 && s.tasks != n:
			s.problem(0, "--gpus", fmt.Sprintf("is %d with %d for each task, which are not %d tasks", all, per, s.tasks), "keep one of --gpus, --gpus-per-task and --ntasks")
		case n > 0:
			s.tasks = n
		}
	}
}

// tasksByGPUs follows that the GPUs of a node are shared out among its tasks.
func (s *script) tasksByGPUs() {
	node, task := s.gpusPerNode.Count, s.gpusPerTask.Count
	if task == 0 || node%task != 0 || s.tasksPerNode > 0 && s.tasksPerNode != node/task {
		s.problem(0, "--gpus-per-task", fmt.Sprintf("is %d with %d of each node, which are not the tasks of a node", task, node), "keep one of --gpus-per-task and --gpus-per-node")
		return
	}
	each := node / task
	switch {
	case each == 0: // no GPUs
	case s.tasks == 0:
		s.tasksPerNode = each
	case s.nodesGiven && s.tasks != each*s.nodes:
		s.problem(0, "--ntasks", fmt.Sprintf("is %d, and the GPUs of %d nodes are for %d tasks", s.tasks, s.nodes, each*s.nodes), "keep one of --gpus-per-task and --gpus-per-node")
	default:
		s.tasksPerNode = each // and as many nodes as that takes
	}
}

// localDisks are the names by which sites count GB of a node's own disk.
var localDisks = []string{"lscratch", "nvme", "ssd", "tmpspace", "localtmp", "tmpfs", "disk"}

// disk takes an amount of the node's own disk: GB, or with a unit what that says.
func (s *script) disk(name, amount string) error {
	n, err := wholeNumber(amount)
	if err != nil {
		var mib int64
		mib, err = sizes.Parse(amount)
		n = int64(sizes.GiB(mib))
	}
	if err != nil || n < 1 {
		return fmt.Errorf("wants GB of the node's disk behind %s, as %s:100", name, name)
	}
	s.spec.Gbatch.DiskGB = int(n)
	s.note(0, "--gres", fmt.Sprintf("%s is %d GB of disk for what the container writes, as below /tmp", name, n))
	return nil
}

// gres takes gpu, gpu:N, gpu:MODEL and gpu:MODEL:N, and the node's own disk.
func (s *script) gres(v string) error {
	if v == "none" || v == "NONE" {
		return nil
	}
	s.forgetGPUs()
	gpus := 0
	for part := range strings.SplitSeq(v, ",") {
		name, rest, more := strings.Cut(strings.TrimPrefix(part, "gres:"), ":")
		if slices.Contains(localDisks, name) {
			if err := s.disk(name, rest); err != nil {
				return err
			}
			continue
		}
		if name != "gpu" {
			return fmt.Errorf("has %s: only gpu is known here, for other things use --constraint with a feature", document.Quote(name))
		}
		if gpus++; gpus > 1 {
			return errors.New("has GPUs of two kinds: all GPUs of a job are alike")
		}
		s.gpusPerNode = GPUs{Count: 1, given: true}
		if more {
			// gpu:MODEL(S:0-1):N has sockets, which the node chooses.
			if strings.Contains(rest, "(") {
				return errors.New("names sockets, which the node chooses itself: remove what is in brackets")
			}
			g, err := ParseGPUs(rest)
			if err != nil {
				return err
			}
			s.gpusPerNode = g
		}
	}
	return nil
}
