package sched

import (
	"fmt"
	"slices"
	"strings"

	"gbatch/sched/words"
)

// reasons is everything that keeps the job from starting.
func (x *explainer) reasons(e *entry) []Reason {
	var out []Reason
	add := func(code Code, at Time, format string, args ...any) {
		out = append(out, Reason{Code: code, Text: fmt.Sprintf(format, args...), At: at})
	}
	c, k := e.class, e.class.kind
	ranks := k.shape.Ranks()
	if hit, over := x.overLimit(c); over && !x.reservedFor(e.id) {
		add(CodeLimit, 0, "%s", hit.text())
	}
	if e.since > x.now {
		add(CodeBeginTime, e.since, "waits for its begin time")
	}
	planned, live := x.liftPlan(k)
	switch {
	case live.nodes < ranks:
		add(CodeNever, 0, "%s", x.neverText(k, live.nodes))
	case live.room >= ranks:
		if planned {
			add(CodePriority, 0, "%s", x.priorityText(e))
		}
	case live.room+live.shut >= ranks:
		w := x.s.index.windows[live.window]
		add(CodeReservation, w.End, "%s and keeps it off %s with room", windowText(w, x.now), words.Plural(live.shut, "node"))
	default:
		add(CodeResources, 0, "%s", live.resourcesText(k.shape))
	}
	slices.SortStableFunc(out, compareCodes)
	return out
}

// liftPlan counts the nodes as they were before the round started anything, and
// says whether the round leaves no room where there was some.
func (x *explainer) liftPlan(k *jobKind) (planned bool, live census) {
	after := x.find(k) == nil
	log := x.log
	for _, t := range slices.Backward(log) {
		for _, rk := range t.held {
			rk.node.give(rk)
		}
	}
	live = x.census(k)
	for _, t := range log {
		for _, rk := range t.held {
			rk.node.take(rk)
		}
	}
	return after, live
}

func (x *explainer) priorityText(e *entry) string {
	ids, n := x.before(e)
	if n == 0 {
		return "jobs before it go first"
	}
	names := make([]string, 0, 3)
	for _, id := range ids[:min(len(ids), 3)] {
		names = append(names, fmt.Sprint(id))
	}
	more := ""
	if n > len(names) {
		more = ", ..."
	}
	want := "want"
	if n == 1 {
		want = "wants"
	}
	return fmt.Sprintf("%s before it %s the same nodes (%s%s)", words.Plural(n, "job"), want, strings.Join(names, ", "), more)
}

func windowText(w *window, now Time) string {
	what := "reservation"
	if w.Maintenance {
		what = "maintenance"
	}
	when := "is in force"
	if w.Start > now {
		when = fmt.Sprintf("starts in %s, before the job's limit", words.Span(w.Start-now))
	}
	return fmt.Sprintf("%s %q %s", what, w.Name, when)
}

// neverText says what no node has, and what the nearest ones have.
func (r *round) neverText(k *jobKind, matching int) string {
	x := k.shape
	if matching > 0 {
		among := ""
		if x.choosy() {
			among = " among those that it allows by name"
		}
		return fmt.Sprintf("needs %d nodes that each have %s: there are %d%s", x.Ranks(), x.rankText(), matching, among)
	}
	most, named := fitsAll, !x.choosy()
	var near *nodeKind
	for _, nk := range r.s.index.order {
		has := slices.ContainsFunc(nk.nodes, func(n *node) bool { return !n.gone && x.named(n) })
		if !has {
			continue
		}
		named = true
		f := x.on(nk)
		if near == nil || f.why > most || f.why == most && larger(nk.sample, near.sample) {
			most, near = f.why, nk
		}
	}
	switch {
	case !named:
		return x.namesText()
	case near == nil:
		return "there are no nodes"
	}
	models := r.s.index.models()
	if len(models) == 0 && (most == lacksModel || most == fewGPUs) {
		return "no node has a GPU"
	}
	n := near.sample
	largest := fmt.Sprintf("largest: %s on %s", capacityText(n, near.gpus), firstName(near))
	switch most {
	case wrongCluster:
		return fmt.Sprintf("no node is in cluster %d", x.Cluster)
	case lacksFeature:
		return r.featuresText(x)
	case lacksModel:
		return fmt.Sprintf(`no node has gpuModel "%s" (models here: %s)`, strings.Join(x.GPUModels, `" or "`), strings.Join(models, ", "))
	case lacksGPUMem:
		return fmt.Sprintf("no such GPU has %s GiB of memory", words.GiB(x.GPUMemMiB))
	case lacksComputeCap:
		return fmt.Sprintf("no such GPU has compute capability %d.%d", x.MinComputeCap/10, x.MinComputeCap%10)
	case lacksCUDA:
		return fmt.Sprintf("no such node has CUDA %d.%d", x.MinCUDA/100, x.MinCUDA%100)
	case lacksDisk:
		return fmt.Sprintf("no such node has a disk of %s GiB", words.GiB(x.DiskMiB))
	case noSharing:
		return "no node with such GPUs allows shares of a GPU: ask for a whole one"
	}
	return fmt.Sprintf("no node has %s (%s)", x.rankText(), largest)
}

func larger(a, b *Node) bool {
	if len(a.GPUs) != len(b.GPUs) {
		return len(a.GPUs) > len(b.GPUs)
	}
	return a.MilliCPU > b.MilliCPU
}

func firstName(k *nodeKind) string {
	name := ""
	for _, n := range k.nodes {
		if !n.gone && (name == "" || n.Name < name) {
			name = n.Name
		}
	}
	return name
}

func capacityText(n *Node, gpus gpuSet) string {
	model := "GPU"
	if g := gpus.next(0); g >= 0 {
		model = n.GPUs[g].Model
	}
	return fmt.Sprintf("%d x %s, %s cores, %s GiB", gpus.count(), model, words.Thousandths(n.MilliCPU), words.GiB(n.MemMiB))
}

// featuresText says what no node has, by the node that lacks the least.
func (r *round) featuresText(x *shape) string {
	var least []string
	name := ""
	for _, nk := range r.s.index.order {
		if l := x.lacks(nk.sample); x.on(nk).why == lacksFeature && (name == "" || len(l) < len(least)) {
			least, name = l, firstName(nk)
		}
	}
	if len(x.Features)+len(x.AnyFeatures) == 1 {
		return "no node has the feature " + least[0]
	}
	return fmt.Sprintf("no node has all the features: nearest is %s, which lacks %s", name, strings.Join(least, " and "))
}
