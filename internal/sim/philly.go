package sim

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

	"gbatch/sched"
)

// Span is the part of a log that is replayed: from From until before Until.
// A zero time is no bound.
type Span struct{ From, Until time.Time }

// phillySpan is the two months of the Philly log that others have replayed.
var phillySpan = Span{time.Date(2017, 10, 1, 0, 0, 0, 0, time.UTC), time.Date(2017, 12, 1, 0, 0, 0, 0, time.UTC)}

// phillyColumns are those of the two forms of the job list: of the log itself,
// and of the schedules that others published, in seconds since its begin.
var phillyColumns = []string{"timestamp", "duration", "num_gpus", "gpu_time", "cluster",
	"job_id", "submit_time", "gpu_num", "start_time", "queue"}

// readPhilly reads the job list of Microsoft's Philly clusters: timestamp,
// duration in seconds, number of GPUs. The log names no users; its virtual
// clusters, which were given to teams, stand for them. Users gave no limits
// either. A job of more GPUs than a node has gets several nodes: see Gang.
func readPhilly(r io.Reader, span Span, perNode int) (workload, error) {
	w := workload{Batch: true} // as the published schedules: ends of a second, then submissions, then one round
	t, err := openTable(r, nil, phillyColumns)
	if err != nil {
		return w, err
	}
	known := shapes{}
	outside, empty, n := 0, 0, 0
	for {
		more, err := t.next()
		if err != nil {
			return w, err
		}
		if !more {
			break
		}
		n++
		row, err := t.philly(span)
		switch {
		case err != nil:
			return w, err
		case row.outside:
			outside++
			continue
		case row.gpus == 0:
			empty++
			continue
		}
		name := t.text("job_id")
		if name == "" {
			name = strconv.Itoa(n)
		}
		w.Jobs = append(w.Jobs, Job{Name: name, User: t.text("cluster"), Project: "trace",
			Submit: row.at, Run: row.run, Shape: known.of(gangOf(row.gpus, perNode), "")})
	}
	if outside > 0 {
		w.note("%d jobs left out: they were not submitted from %s until before %s", outside, span.From.Format(time.DateOnly), span.Until.Format(time.DateOnly))
	}
	if empty > 0 {
		w.note("%d jobs left out: they ask for no GPU", empty)
	}
	w.dropSmall()
	w.inOrder()
	if !t.has("submit_time") { // a published schedule is in its order
		phillyTies(w.Jobs)
	}
	w.fromFirst()
	return w, nil
}

// phillyRow is what a row of either form says.
type phillyRow struct {
	at, run sched.Time
	gpus    int64
	outside bool // of the span
}

func (t *table) philly(span Span) (phillyRow, error) {
	var row phillyRow
	var err error
	gpus := "num_gpus"
	if t.has("submit_time") {
		gpus = "gpu_num"
		at, err := t.number("submit_time")
		if err != nil {
			return row, err
		}
		row.at = sched.Time(at) * sched.Second
	} else {
		at, err := time.Parse(time.DateTime, t.text("timestamp"))
		if err != nil {
			return row, t.errorf("timestamp is %q: want it as 2017-10-01 00:00:45", t.text("timestamp"))
		}
		row.at = sched.Time(at.UnixMilli())
		row.outside = at.Before(span.From) || !span.Until.IsZero() && !at.Before(span.Until)
	}
	run, err := strconv.ParseFloat(t.text("duration"), 64)
	if err != nil || math.IsNaN(run) || run < 0 || run > 1<<40 {
		return row, t.errorf("duration is %q: want seconds, 0 or more", t.text("duration"))
	}
	row.run = sched.Time(math.Round(run * 1000))
	row.gpus, err = t.number(gpus)
	return row, err
}

// phillyOrder puts the jobs into the order of a published schedule. Jobs that it
// does not have are left out.
func (w workload) phillyOrder(r io.Reader, perNode int) (workload, error) {
	order, err := readPhilly(r, Span{}, perNode)
	if err != nil {
		return w, err
	}
	type key struct {
		at, run sched.Time
		nodes   int
		milli   int64
	}
	of := func(j *Job) key { return key{j.Submit, j.Run, j.Shape.Nodes, j.Shape.MilliGPU} }
	left := map[key][]Job{}
	for i := range w.Jobs {
		left[of(&w.Jobs[i])] = append(left[of(&w.Jobs[i])], w.Jobs[i])
	}
	out := w
	out.Jobs = nil
	for i := range order.Jobs {
		k := of(&order.Jobs[i])
		if len(left[k]) == 0 {
			return w, fmt.Errorf("job %s of the order, submitted after %d s, is not in the trace", order.Jobs[i].Name, k.at/sched.Second)
		}
		out.Jobs = append(out.Jobs, left[k][0])
		left[k] = left[k][1:]
	}
	if n := len(w.Jobs) - len(out.Jobs); n > 0 {
		out.note("%d jobs left out: the order does not have them", n)
	}
	return out, nil
}

// smallCluster is how many jobs a virtual cluster must have had in the span to
// count: the published schedules leave out those with fewer.
const smallCluster = 10

// dropSmall leaves out the jobs of virtual clusters that hardly had any.
func (w *workload) dropSmall() {
	jobs := map[string]int{}
	for _, j := range w.Jobs {
		jobs[j.User]++
	}
	all := len(w.Jobs)
	w.Jobs = slices.DeleteFunc(w.Jobs, func(j Job) bool { return j.User != "" && jobs[j.User] < smallCluster })
	if n := all - len(w.Jobs); n > 0 {
		w.note("%d jobs left out: their virtual clusters had fewer than %d", n, smallCluster)
	}
}

// fromFirst makes the first submission the begin of the log.
func (w *workload) fromFirst() {
	if len(w.Jobs) == 0 {
		return
	}
	first := w.Jobs[0].Submit
	w.Epoch = int64(first / sched.Second)
	for i := range w.Jobs {
		w.Jobs[i].Submit -= first
	}
}

// gangOf is a request for GPUs on nodes that have so many each: on one node, or
// else on whole nodes and, for what is left, a part of one more.
func gangOf(gpus int64, perNode int) sched.Shape {
	most := int64(max(perNode, 1))
	if gpus <= most {
		return sched.Shape{Nodes: 1, MilliGPU: gpus * sched.WholeGPU}
	}
	return sched.Shape{Nodes: int(gpus / most), MilliGPU: most * sched.WholeGPU, RestMilliGPU: gpus % most * sched.WholeGPU}
}

// The log has whole seconds, and thousands of them have more than one job. Under
// a strict first-come queue the order within a second moves the mean wait by a
// third, so a comparison with the published schedules needs theirs. They sorted
// the log by time, and then sorted it by time once more with the quicksort of
// numpy, which does not keep equal ones in order. So does this.

// quicksortRun is how many jobs that sort leaves to insertion, which keeps equal
// ones in order.
const quicksortRun = 16

// phillyTies gives jobs that are sorted by time, lines of one second in the
// order of the log, the published order within a second.
func phillyTies(jobs []Job) {
	for len(jobs) > quicksortRun {
		p := partition(jobs)
		phillyTies(jobs[:p])
		jobs = jobs[p+1:]
	}
	for i := 1; i < len(jobs); i++ {
		for k := i; k > 0 && jobs[k].Submit < jobs[k-1].Submit; k-- {
			jobs[k], jobs[k-1] = jobs[k-1], jobs[k]
		}
	}
}

// partition puts jobs that are not later than a pivot, the median of three,
// before it, those that are not earlier behind it, and returns its place.
func partition(jobs []Job) int {
	at := func(i int) sched.Time { return jobs[i].Submit }
	swap := func(i, k int) { jobs[i], jobs[k] = jobs[k], jobs[i] }
	last := len(jobs) - 1
	mid := last / 2
	if at(mid) < at(0) {
		swap(mid, 0)
	}
	if at(last) < at(mid) {
		swap(last, mid)
	}
	if at(mid) < at(0) {
		swap(mid, 0)
	}
	pivot := at(mid)
	i, k := 0, last-1
	swap(mid, k)
	for {
		for i++; at(i) < pivot; i++ {
		}
		for k--; pivot < at(k); k-- {
		}
		if i >= k {
			swap(i, last-1)
			return i
		}
		swap(i, k)
	}
}
