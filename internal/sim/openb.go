package sim

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"

	"gbatch/sched"
)

// readOpenbNodes reads a node list of Alibaba's openb traces.
func readOpenbNodes(r io.Reader) ([]Node, error) {
	t, err := openTable(r, []string{"sn", "cpu_milli", "memory_mib", "gpu", "model"}, nil)
	if err != nil {
		return nil, err
	}
	var out []Node
	for {
		more, err := t.next()
		if err != nil || !more {
			return out, err
		}
		var n [3]int64
		for i, name := range [...]string{"cpu_milli", "memory_mib", "gpu"} {
			if n[i], err = t.number(name); err != nil {
				return nil, err
			}
		}
		if n[2] > sched.MaxGPUs || n[0]%1000 != 0 {
			return nil, t.errorf("%d milli CPU and %d GPUs: want whole cores and at most %d GPUs", n[0], n[2], sched.MaxGPUs)
		}
		node := gpuNode(t.text("sn"), int(n[2]), t.text("model"))
		node.Inventory.CPUs, node.Inventory.MemBytes = int(n[0]/1000), n[1]<<20
		out = append(out, node)
	}
}

// openbColumns are columns of pod lists that the replay has no use for.
var openbColumns = []string{"gpu_spec", "qos", "pod_phase", "creation_time", "deletion_time", "scheduled_time"}

// readOpenbPods reads a pod list of Alibaba's openb traces, as jobs that are
// all submitted at once: see Inflate and Reorder.
func readOpenbPods(r io.Reader) (workload, error) {
	t, err := openTable(r, []string{"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"}, openbColumns)
	if err != nil {
		return workload{}, err
	}
	w := workload{OneShot: true}
	known := shapes{}
	for {
		more, err := t.next()
		if err != nil || !more {
			return w, err
		}
		var n [4]int64
		for i, name := range [...]string{"cpu_milli", "memory_mib", "num_gpu", "gpu_milli"} {
			if n[i], err = t.number(name); err != nil {
				return w, err
			}
		}
		if n[3] > sched.WholeGPU || n[2] > 1 && n[3] != sched.WholeGPU || n[2] > 0 && n[3] == 0 {
			return w, t.errorf("%d GPUs of %d/1000 each: want shares of one GPU, or whole ones", n[2], n[3])
		}
		shape := sched.Shape{MilliCPU: n[0], MemMiB: n[1], MilliGPU: n[2] * n[3]}
		if models := t.text("gpu_spec"); models != "" {
			shape.GPUModels = strings.Split(models, "|")
		}
		if n[0] == 0 && n[1] == 0 && shape.MilliGPU == 0 {
			w.note("pod %s left out: it asks for nothing", t.text("name"))
			continue
		}
		w.Jobs = append(w.Jobs, Job{Name: t.text("name"), User: "openb", Project: "trace", Run: sched.Never,
			Limit: sched.Day, Shape: known.of(shape, t.text("gpu_spec"))})
	}
}

// maxPods bounds how many pods a load may need.
const maxPods = 2_000_000

// again is between the name of a pod that is drawn once more and a number.
const again = "-tuned-"

// inflate makes a workload that asks for load times the GPUs of the nodes: the
// pods in a random order, and when that is not enough, pods drawn at random.
// One comes each second, and none ever leaves.
func (w workload) inflate(nodes []Node, load float64, seed uint64) (workload, error) {
	out := w
	var have, want int64
	for i := range nodes {
		have += int64(len(nodes[i].Inventory.GPUs)) * sched.WholeGPU
	}
	want = int64(float64(have) * load)
	var all int64
	for i := range w.Jobs {
		all += w.Jobs[i].Shape.MilliGPU
	}
	if want > 0 && all == 0 {
		return w, fmt.Errorf("no pod of the trace asks for a GPU: a load of %g cannot be reached", load)
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	order := rng.Perm(len(w.Jobs))
	out.Jobs = nil
	var asked int64
	for i := 0; asked < want; i++ {
		if i == maxPods {
			return w, fmt.Errorf("a load of %g needs more than %d pods of this trace: give a lower one", load, maxPods)
		}
		var j Job
		if i < len(order) {
			j = w.Jobs[order[i]]
		} else {
			j = w.Jobs[rng.IntN(len(w.Jobs))]
			j.Name += again + strconv.Itoa(i-len(order))
		}
		asked += j.Shape.MilliGPU
		out.arrive(j)
	}
	return out, nil
}

// reorder makes a workload of the pods that an order file names, one a second.
func (w workload) reorder(r io.Reader) (workload, error) {
	t, err := openTable(r, []string{"pod"}, []string{"order", "node_FGD"})
	if err != nil {
		return w, err
	}
	byName := map[string]int{}
	for i := range w.Jobs {
		byName[w.Jobs[i].Name] = i
	}
	out := w
	out.Jobs = nil
	for {
		more, err := t.next()
		if err != nil || !more {
			return out, err
		}
		name := t.text("pod")
		i, ok := byName[name]
		if !ok { // sampled once more: the name of the pod, and a number
			first, _, _ := strings.Cut(name, again)
			i, ok = byName[first]
		}
		if !ok {
			return w, t.errorf("pod %q is not in the pod list", name)
		}
		j := w.Jobs[i]
		j.Name = name
		out.arrive(j)
	}
}

func (w *workload) arrive(j Job) {
	j.Submit = sched.Time(len(w.Jobs)) * sched.Second
	w.Jobs = append(w.Jobs, j)
}

// mixOf is the shapes of a workload with how often they are asked for: what
// fragmentation is measured against.
func mixOf(jobs []Job) []sched.MixShape {
	count := map[*sched.Shape]int64{}
	var order []*sched.Shape
	for i := range jobs {
		x := jobs[i].Shape
		if count[x] == 0 {
			order = append(order, x)
		}
		count[x]++
	}
	out := make([]sched.MixShape, len(order))
	for i, x := range order {
		out[i] = sched.MixShape{Shape: *x, Weight: count[x]}
	}
	return out
}
