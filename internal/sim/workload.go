package sim

import (
	"cmp"
	"fmt"
	"slices"

	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
)

// workload is what a log says: jobs, and the machine if the log knows it.
type workload struct {
	Jobs  []Job  // by Submit, then in the order of the log
	Nodes []Node // empty: the caller must say
	Procs int    // processors of a log of one undifferentiated pool; 0: unknown
	Epoch int64  // Unix seconds of time 0; 0: unknown

	Batch   bool             // one round for all events of a moment
	OneShot bool             // a job that finds no room when it comes is gone
	Mix     []sched.MixShape // what fragmentation is measured against; nil: what was submitted

	// Notes say what the reader left out or put right, in words.
	Notes []string
}

// Job is a job of a workload. Times are milliseconds since the log's begin.
type Job struct {
	Name          string // in the log
	User, Project string
	Submit        sched.Time
	Run           sched.Time // until it ends by itself; Never: it stays
	Limit         sched.Time // asked for; 0: none
	Shape         *sched.Shape

	QOS     string
	Request *state.Request // all that it asked, where more is known than Shape and Limit
	Waited  sched.Time     // in the log; only where that says so

	Partition string // of Slurm
}

// Node is a simulated machine.
type Node struct {
	Name      string
	Inventory node.Inventory
}

// lineError says where a log cannot be read.
func lineError(line int, format string, args ...any) error {
	return fmt.Errorf("line %d: %w", line, fmt.Errorf(format, args...))
}

// shapes keeps one copy of equal shapes, so that jobs share them.
type shapes map[flatShape]*sched.Shape

type flatShape struct {
	nodes              int
	milli, rest        int64
	cpu, mem           int64
	models, node, feat string
}

func (s shapes) of(x sched.Shape, models string) *sched.Shape {
	key := flatShape{nodes: x.Nodes, milli: x.MilliGPU, rest: x.RestMilliGPU, cpu: x.MilliCPU, mem: x.MemMiB, models: models}
	if s[key] == nil {
		s[key] = &x
	}
	return s[key]
}

// inOrder sorts the jobs by time and says how many were out of order.
func (w *workload) inOrder() {
	back := 0
	for i := 1; i < len(w.Jobs); i++ {
		if w.Jobs[i].Submit < w.Jobs[i-1].Submit {
			back++
		}
	}
	if back > 0 {
		w.note("%d jobs were submitted before the job on the line above: sorted by time", back)
		slices.SortStableFunc(w.Jobs, func(a, b Job) int { return cmp.Compare(a.Submit, b.Submit) })
	}
}

func (w *workload) note(format string, args ...any) {
	w.Notes = append(w.Notes, fmt.Sprintf(format, args...))
}

// pool is one node that stands for a pool of processors: they are its cores.
func pool(procs int) []Node {
	return []Node{{Name: "pool", Inventory: node.Inventory{Hostname: "pool", CPUs: procs, MemBytes: 1 << 40, Simulated: true, Bridge: true, Gang: true}}}
}

// gpuNodes are n equal nodes with so many GPUs each.
func gpuNodes(n, gpus int, model string) []Node {
	out := make([]Node, n)
	for i := range out {
		out[i] = gpuNode(fmt.Sprintf("n%04d", i+1), gpus, model)
		out[i].Inventory.CPUs, out[i].Inventory.MemBytes = 16*max(gpus, 1), 1<<40
	}
	return out
}

func gpuNode(name string, gpus int, model string) Node {
	inv := node.Inventory{Hostname: name, CUDA: 1200, Simulated: true, AllowShare: true, Bridge: true, Gang: true}
	for g := range gpus {
		inv.GPUs = append(inv.GPUs, node.GPU{UUID: fmt.Sprintf("%s/%d", name, g), Model: model, Index: g, MemBytes: 80 << 30, ComputeCap: 80, NUMA: -1})
	}
	return Node{Name: name, Inventory: inv}
}
