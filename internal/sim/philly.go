package sim

import (
	"io"
	"math"
	"strconv"
	"time"

	"gbatch/sched"
)

// Span is the part of a log that is replayed: from From until before Until.
// A zero time is no bound.
type Span struct{ From, Until time.Time }

// PhillySpan is the two months of the Philly log that others have replayed.
var PhillySpan = Span{time.Date(2017, 10, 1, 0, 0, 0, 0, time.UTC), time.Date(2017, 12, 1, 0, 0, 0, 0, time.UTC)}

// ReadPhilly reads the job list of Microsoft's Philly clusters: timestamp,
// duration in seconds, number of GPUs. The log names no users; its virtual
// clusters, which were given to teams, stand for them. Users gave no limits
// either. A job of more GPUs than a node has gets several nodes: see Gang.
func ReadPhilly(r io.Reader, span Span, perNode int) (Workload, error) {
	t, err := openTable(r, []string{"timestamp", "duration", "num_gpus"}, []string{"gpu_time", "cluster"})
	if err != nil {
		return Workload{}, err
	}
	w := Workload{}
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
		at, err := time.Parse(time.DateTime, t.text("timestamp"))
		if err != nil {
			return w, t.errorf("timestamp is %q: want it as 2017-10-01 00:00:45", t.text("timestamp"))
		}
		run, err := strconv.ParseFloat(t.text("duration"), 64)
		if err != nil || math.IsNaN(run) || run < 0 || run > 1<<40 {
			return w, t.errorf("duration is %q: want seconds, 0 or more", t.text("duration"))
		}
		gpus, err := t.number("num_gpus")
		if err != nil {
			return w, err
		}
		n++
		if at.Before(span.From) || !span.Until.IsZero() && !at.Before(span.Until) {
			outside++
			continue
		}
		if gpus == 0 {
			empty++
			continue
		}
		w.Jobs = append(w.Jobs, Job{
			Name: strconv.Itoa(n), User: t.text("cluster"), Project: "trace",
			Submit: sched.Time(at.UnixMilli()), Run: sched.Time(math.Round(run * 1000)), Shape: known.of(Gang(gpus, perNode), ""),
		})
	}
	if outside > 0 {
		w.note("%d jobs left out: they were submitted before %s or after %s", outside, span.From.Format(time.DateOnly), span.Until.Format(time.DateOnly))
	}
	if empty > 0 {
		w.note("%d jobs left out: they ask for no GPU", empty)
	}
	w.inOrder()
	w.fromFirst()
	return w, nil
}

// fromFirst makes the first submission the begin of the log.
func (w *Workload) fromFirst() {
	if len(w.Jobs) == 0 {
		return
	}
	first := w.Jobs[0].Submit
	w.Epoch = int64(first / sched.Second)
	for i := range w.Jobs {
		w.Jobs[i].Submit -= first
	}
}

// Gang is a request for GPUs on nodes that have so many each: on one node, or
// else on as few as hold them, with equally many on each.
func Gang(gpus int64, perNode int) sched.Shape {
	most := int64(max(perNode, 1))
	nodes := (gpus + most - 1) / most
	each := (gpus + nodes - 1) / nodes
	return sched.Shape{Nodes: int(nodes), MilliGPU: each * sched.WholeGPU}
}
