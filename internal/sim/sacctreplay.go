package sim

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"gbatch/internal/node"
	"gbatch/sched"
)

// partitionFeature is how a node says that jobs of a partition ran there.
const partitionFeature = "partition="

// sacct reads an export and makes the machine it is replayed on: the nodes that
// are given, or those that it names, each as large as what it held at once.
func (s Source) sacct(nodes []Node) (workload, []Node, error) {
	l, err := readSacct(s.Trace)
	if err != nil {
		return workload{}, nil, err
	}
	given := len(nodes) > 0
	if !given {
		if !l.has("nodelist") {
			return workload{}, nil, errors.New("the export does not say what machine it is of: give --nodes and --gpus-per-node, or --procs, or export NodeList too")
		}
		nodes = l.machine()
	}
	w := workload{}
	known := shapes{}
	uneven := 0
	for _, j := range l.jobs {
		w.Jobs = append(w.Jobs, Job{
			Name: j.id, User: j.user, Project: cmp.Or(j.account, "trace"), Partition: j.partition,
			Submit: j.submit, Run: j.run, Limit: max(j.limit, j.run, sched.Second), Waited: j.start - j.submit,
			Shape: s.sacctShape(j, given, known, &uneven),
		})
	}
	l.notes(&w, given, uneven)
	w.inOrder()
	w.fromFirst()
	return w, nodes, nil
}

// sacctShape is what a job asks for in the replay: the same on each of its nodes.
func (s Source) sacctShape(j sacctJob, given bool, known shapes, uneven *int) *sched.Shape {
	n, gpus := j.tres.nodes, j.tres.gpu()
	if s.Procs > 0 {
		return known.of(sched.Shape{MilliCPU: j.tres.cpus * 1000}, "")
	}
	if gpus%n != 0 || j.tres.cpus%n != 0 {
		*uneven++
	}
	up := func(all int64) int64 { return (all + n - 1) / n }
	x := sched.Shape{MilliGPU: up(gpus) * 1000, MilliCPU: up(j.tres.cpus) * 1000, MemMiB: up(j.tres.mib)}
	if n > 1 {
		x.Nodes = int(n)
	}
	if given {
		return known.of(x, "")
	}
	if len(j.models) == 1 {
		x.GPUModels = j.models
	}
	if j.partition != "" {
		x.Features = []string{partitionFeature + j.partition}
	}
	return known.of(x, fmt.Sprint(x.GPUModels, x.Features))
}

// notes say what the replay cannot know.
func (l *sacctLog) notes(w *workload, given bool, uneven int) {
	for _, n := range []struct {
		count int
		text  string
	}{
		{l.never, "%d jobs left out: they never began; while they waited they may have held a place that others did not get"},
		{l.open, "%d jobs left out: they run still"},
		{l.steps, "%d steps of jobs passed over"},
		{l.torn, fmt.Sprintf("%%d lines left out that have more fields than the header, the first is line %d: a name has | in it, export without it", l.tornLine)},
		{l.het, "%d parts of heterogeneous jobs are replayed as jobs of their own"},
		{l.many, "%d tries of jobs that were queued again are replayed as jobs of their own"},
		{uneven, "%d jobs had cores or GPUs unevenly on their nodes: each is replayed with the most on each"},
	} {
		if n.count > 0 {
			w.note(n.text, n.count)
		}
	}
	if !l.has("eligible") {
		w.note("no Eligible column: recorded waits have in them what jobs waited for others, or for a time, by their own will")
	}
	if !l.has("timelimit") && !l.has("timelimitraw") {
		w.note("no Timelimit column: jobs are replayed as if each had asked for as long as it ran, which makes a plan better than it could be")
	}
	if !l.has("alloctres") && !l.has("reqtres") {
		w.note("no AllocTRES or ReqTRES column: GPUs and memory are not known, and not replayed")
	}
	if !l.epoch {
		w.note("times have no zone: where the clock changed in the time of the export, waits over that hour are wrong by one")
	}
	if given {
		w.note("the nodes are those that were given: partitions and types of GPUs are not kept apart")
	} else {
		w.note("the nodes are those that the export names, each as large as what it held at once at most: real ones may have more")
	}
	w.note("the export does not say: constraints, licences, reservations, preemption, limits and priorities of then, nodes that were down or came later")
}

// use is what jobs hold of one node: of each GPU type, of cores and of memory.
type use struct {
	gpus      map[string]int64
	cpus, mib int64
}

// machine is the nodes of the export by what they held at once at most, with the
// partitions whose jobs ran there.
func (l *sacctLog) machine() []Node {
	type edge struct {
		at   sched.Time
		sign int64
		job  *sacctJob
	}
	edges, partitions := map[string][]edge{}, map[string]map[string]bool{}
	for i := range l.jobs {
		j := &l.jobs[i]
		for _, name := range j.nodes {
			edges[name] = append(edges[name], edge{j.start, 1, j}, edge{max(j.end, j.start+1), -1, j})
			if partitions[name] == nil {
				partitions[name] = map[string]bool{}
			}
			if j.partition != "" {
				partitions[name][partitionFeature+j.partition] = true
			}
		}
	}
	var nodes []Node
	for _, name := range slices.Sorted(maps.Keys(edges)) {
		slices.SortStableFunc(edges[name], func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.sign, b.sign)) })
		now, most := use{gpus: map[string]int64{}}, use{gpus: map[string]int64{}}
		for _, e := range edges[name] {
			n := e.job.tres.nodes
			up := func(all int64) int64 { return e.sign * ((all + n - 1) / n) }
			now.cpus, now.mib = now.cpus+up(e.job.tres.cpus), now.mib+up(e.job.tres.mib)
			most.cpus, most.mib = max(most.cpus, now.cpus), max(most.mib, now.mib)
			for model, count := range e.job.tres.gpus { // each by itself: order does not matter
				now.gpus[model] += up(count)
				most.gpus[model] = max(most.gpus[model], now.gpus[model])
			}
		}
		nodes = append(nodes, most.node(name, slices.Sorted(maps.Keys(partitions[name]))))
	}
	return nodes
}

func (u use) node(name string, features []string) Node {
	inv := node.Inventory{Hostname: name, CPUs: int(u.cpus), MemBytes: max(u.mib, 1) << 20, CUDA: 1200, Simulated: true, AllowShare: true, Bridge: true, Gang: true, Features: features}
	for _, model := range slices.Sorted(maps.Keys(u.gpus)) {
		for range min(u.gpus[model], sched.MaxGPUs-int64(len(inv.GPUs))) {
			g := len(inv.GPUs)
			inv.GPUs = append(inv.GPUs, node.GPU{UUID: fmt.Sprintf("%s/%d", name, g), Model: cmp.Or(model, "GPU"), Index: g, MemBytes: 80 << 30, ComputeCap: 80, NUMA: -1})
		}
	}
	return Node{name, inv}
}

// AgainstRecord replays a log that has its own waits: as it was, under EASY, the
// rule that most sites have, and as the options say. How far EASY is from what
// was says how much of a difference is the replay's.
func (o Options) AgainstRecord(w workload, nodes []Node, watch Watch) ([]Report, []Curve, error) {
	was := w.asItWas(nodes)
	was.Notes = w.Notes
	reports, curves := []Report{was}, []Curve(nil)
	easy := o
	easy.Policy, easy.Estimates, easy.Placement, easy.Set = "easy", "user", "", nil
	for _, run := range []Options{easy, o} {
		if len(reports) == 2 && reports[1].Policy == run.Name() && len(o.Set) == 0 {
			break
		}
		cfg, res, err := run.Replay(w, nodes, watch)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", run.Name(), err)
		}
		rep := NewReport(cfg, res)
		rep.Policy, rep.Seed, rep.Groups = run.Name(), o.Seed, groups(cfg, res)
		reports, curves = append(reports, rep), append(curves, Curve{Name: run.Name(), Config: cfg, Result: res})
	}
	return reports, curves, nil
}
