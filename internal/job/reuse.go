package job

import (
	"fmt"

	"gbatch/internal/document"
)

// checkReuse refuses what a task has of its own and could not have in a container that
// other tasks ran in.
func (d *decoder) checkReuse(gn *node, s *Spec) {
	g := s.Gbatch
	if g.Tasks == nil || !g.Tasks.Reuse {
		return
	}
	docker := &s.Request.Docker
	for _, c := range []struct {
		has  bool
		what string
	}{
		{len(g.Before)+len(g.Beside) > 0, "has programs that run before its own or beside it"},
		{g.ranks() > 1, "runs on several nodes"},
		{s.Launches(), "is a batch script that starts tasks by srun"},
		{len(g.Inputs) > 0, "has inputs"},
		{len(g.Outputs) > 0, "has outputs"},
		{g.ProgressFile != "", "has a progressFile"},
		{g.Terminal, "has a terminal"},
		{g.Privileged, "is privileged"},
		{g.Runtime != "", "has a runtime of its own"},
		{len(docker.PortMappings) > 0, "publishes ports"},
	} {
		if c.has {
			d.ProblemAt(gn.Child("tasks"), "reuse", "cannot be had by a job that "+c.what+": a container that tasks share has one for all", "remove one of them")
		}
	}
	for _, m := range docker.Storage {
		if m.HostPath == ScratchHostPath {
			d.ProblemAt(gn.Child("tasks"), "reuse", fmt.Sprintf("cannot be had by a job that has a directory of its own, at %s: tasks that share a container would find there what the ones before wrote", document.Quote(m.ContainerPath)), "use /tmp, which is emptied for each task, or a tmpfs")
		}
		if m.ContainerPath != tmp && under(m.ContainerPath, tmp) {
			d.ProblemAt(gn.Child("tasks"), "reuse", fmt.Sprintf("empties /tmp for each task, and the job mounts something below it, at %s", document.Quote(m.ContainerPath)), "mount it elsewhere, or remove reuse")
		}
	}
}

const tmp = "/tmp"
