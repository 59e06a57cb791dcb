package job

import (
	"fmt"
	"strings"
)

// Launch says that a job is a batch script: its command runs on the first rank
// alone and starts tasks on all of them by srun. The other ranks hold what they
// were granted, with nothing of the user's running until srun starts it there.
// Amounts of 0 were not given.
type Launch struct {
	Tasks       int `json:"tasks,omitempty"`        // that srun starts when it is not told; 0: one on each node
	PerNode     int `json:"tasksPerNode,omitempty"` // the most of them on one node; 0: shared out evenly
	CPUsPerTask int `json:"cpusPerTask,omitempty"`  // 0: one
	GPUsPerTask int `json:"gpusPerTask,omitempty"`  // 0: tasks on a node see all GPUs of the job there

	Script    string `json:"script,omitempty"`    // text of the file at ScriptPath
	Directory string `json:"directory,omitempty"` // that it was submitted from, on the submitter's machine
	Host      string `json:"host,omitempty"`      // that machine
	File      string `json:"file,omitempty"`      // that the script was read from, there; empty: none
}

var launchFields = []field[Launch]{
	{"tasks", func(d *decoder, n *node, l *Launch) { d.integer(n, &l.Tasks, 1, maxLaunchTasks) }, false},
	{"tasksPerNode", func(d *decoder, n *node, l *Launch) { d.integer(n, &l.PerNode, 1, maxLaunchTasks) }, false},
	{"cpusPerTask", func(d *decoder, n *node, l *Launch) { d.integer(n, &l.CPUsPerTask, 1, maxCPUs) }, false},
	{"gpusPerTask", func(d *decoder, n *node, l *Launch) { d.integer(n, &l.GPUsPerTask, 1, maxGPUs) }, false},
	{"script", func(d *decoder, n *node, l *Launch) { d.str(n, &l.Script, scriptText) }, false},
	{"directory", func(d *decoder, n *node, l *Launch) { d.absolute(n, &l.Directory) }, false},
	{"host", func(d *decoder, n *node, l *Launch) { d.str(n, &l.Host, plain(1, 253)) }, false},
	{"file", func(d *decoder, n *node, l *Launch) { d.str(n, &l.File, plain(1, MaxLaunchFile)) }, false},
}

// MaxLaunchFile bounds the characters of a script's path.
const MaxLaunchFile = 4096

// maxLaunchTasks bounds the tasks of one step.
const maxLaunchTasks = 1_000_000

// ScriptPath is where the first rank has the text of Launch.Script, as a program.
const ScriptPath = "/opt/gbatch/slurm_script"

// scriptText wants what the kernel can run.
func scriptText(s string) string {
	first, _, _ := strings.Cut(s, "\n")
	switch {
	case !strings.HasPrefix(s, "#!") || strings.TrimSpace(first[2:]) == "":
		return "must begin with #! and an interpreter"
	case strings.IndexByte(s, 0) >= 0:
		return "must not contain a zero byte"
	case strings.HasSuffix(first, "\r"):
		return fmt.Sprintf("has line ends of Windows, so that no interpreter %q is found", first[2:])
	}
	return ""
}

// StepUse is what the tasks of a step have used, as the kernel counted it of each
// task and of what the task waited for. Memory is that of a task's greatest process.
type StepUse struct {
	UserMS   int64 `json:"userMs"` // processor time of all tasks, in their own code
	SystemMS int64 `json:"systemMs"`

	MaxRSSKiB  int64 `json:"maxRssKib"`
	MaxRSSTask int   `json:"maxRssTask"`
	MaxRSSRank int   `json:"maxRssRank"` // where that task ran
	SumRSSKiB  int64 `json:"sumRssKib"`  // of all tasks, the greatest of each

	MinCPUMS   int64 `json:"minCpuMs"` // of the task that used least
	MinCPUTask int   `json:"minCpuTask"`
	MinCPURank int   `json:"minCpuRank"`
}

// Add counts one more task. First says that it is the first.
func (u *StepUse) Add(task, rank int, first bool, one TaskUse) {
	u.UserMS, u.SystemMS, u.SumRSSKiB = u.UserMS+one.UserMS, u.SystemMS+one.SystemMS, u.SumRSSKiB+one.RSSKiB
	if first || one.RSSKiB > u.MaxRSSKiB {
		u.MaxRSSKiB, u.MaxRSSTask, u.MaxRSSRank = one.RSSKiB, task, rank
	}
	if cpu := one.UserMS + one.SystemMS; first || cpu < u.MinCPUMS {
		u.MinCPUMS, u.MinCPUTask, u.MinCPURank = cpu, task, rank
	}
}

// Sane is the same with nothing below 0, for what a container says of itself.
func (u *StepUse) Sane() *StepUse {
	if u == nil {
		return nil
	}
	out := *u
	for _, n := range []*int64{&out.UserMS, &out.SystemMS, &out.MaxRSSKiB, &out.SumRSSKiB, &out.MinCPUMS} {
		*n = min(max(*n, 0), 1<<50)
	}
	for _, n := range []*int{&out.MaxRSSTask, &out.MaxRSSRank, &out.MinCPUTask, &out.MinCPURank} {
		*n = min(max(*n, 0), maxLaunchTasks)
	}
	return &out
}

// TaskUse is what one task has used.
type TaskUse struct {
	UserMS   int64 `json:"userMs,omitempty"`
	SystemMS int64 `json:"systemMs,omitempty"`
	RSSKiB   int64 `json:"rssKib,omitempty"`
}

// Launches says whether the command runs on the first rank alone.
func (s *Spec) Launches() bool { return s.gbatch().Launch != nil }

// Waits says whether a rank runs nothing until srun starts something there.
func (s *Spec) Waits(rank uint32) bool { return rank > 0 && s.Launches() }

// LeavesFiles says whether files of a container are read when it has ended, by the node's next daemon if need be.
func (s *Spec) LeavesFiles() bool {
	g := s.gbatch()
	return len(g.Outputs) > 0 || g.ProgressFile != ""
}

// Script is the text that a rank has at ScriptPath; empty: nothing.
func (s *Spec) Script(rank uint32) string {
	if l := s.gbatch().Launch; l != nil && rank == 0 {
		return l.Script
	}
	return ""
}

// LaunchDir is where the containers of such a job find srun and what belongs to it.
const LaunchDir = "/opt/gbatch/bin"
