package sched

import (
	"fmt"
	"slices"
	"strings"

	"gbatch/sched/nodes"
	"gbatch/sched/words"
)

// reasons is everything that keeps the job from starting.
func (x *explainer) reasons(e *entry) []Reason {
	var out []Reason
	add := func(code Code, at Time, format string, args ...any) {
		out = append(out, Reason{Code: code, Text: fmt.Sprintf(format, args...), At: at})
	}
	c, k := e.class, e.class.kind
	ranks := k.Shape.Ranks()
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
		w := x.s.index.Windows[live.window]
		add(CodeReservation, w.End, "%s and keeps it off %s with room", windowText(w, x.now), words.Plural(live.shut, "node"))
	default:
		add(CodeResources, 0, "%s", live.resourcesText(k.Shape))
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
		for _, rk := range t.Held {
			rk.Node.Give(rk)
		}
	}
	live = x.census(k)
	for _, t := range log {
		for _, rk := range t.Held {
			rk.Node.Take(rk)
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

func windowText(w *nodes.Window, now Time) string {
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
	x := k.Shape
	if matching > 0 {
		among := ""
		if x.Choosy() {
			among = " among those that it allows by name"
		}
		return fmt.Sprintf("needs %d nodes that each have %s: there are %d%s", x.Ranks(), x.RankText(), matching, among)
	}
	most, named := nodes.FitsAll, !x.Choosy()
	var near *nodes.Kind
	for _, nk := range r.s.index.Order {
		has := slices.ContainsFunc(nk.Nodes, func(n *nodes.Node) bool { return !n.Gone && x.Named(n) })
		if !has {
			continue
		}
		named = true
		f := x.On(nk)
		if near == nil || f.Why > most || f.Why == most && larger(nk.Sample, near.Sample) {
			most, near = f.Why, nk
		}
	}
	switch {
	case !named:
		return x.NamesText()
	case near == nil:
		return "there are no nodes"
	}
	models := r.s.index.Models()
	if len(models) == 0 && (most == nodes.LacksModel || most == nodes.FewGPUs) {
		return "no node has a GPU"
	}
	n := near.Sample
	largest := fmt.Sprintf("largest: %s on %s", capacityText(n, near.GPUs), firstName(near))
	switch most {
	case nodes.WrongCluster:
		return fmt.Sprintf("no node is in cluster %d", x.Cluster)
	case nodes.LacksFeature:
		return r.featuresText(x)
	case nodes.LacksModel:
		return fmt.Sprintf(`no node has gpuModel "%s" (models here: %s)`, strings.Join(x.GPUModels, `" or "`), strings.Join(models, ", "))
	case nodes.LacksGPUMem:
		return fmt.Sprintf("no such GPU has %s GiB of memory", words.GiB(x.GPUMemMiB))
	case nodes.LacksComputeCap:
		return fmt.Sprintf("no such GPU has compute capability %d.%d", x.MinComputeCap/10, x.MinComputeCap%10)
	case nodes.LacksCUDA:
		return fmt.Sprintf("no such node has CUDA %d.%d", x.MinCUDA/100, x.MinCUDA%100)
	case nodes.LacksDisk:
		return fmt.Sprintf("no such node has a disk of %s GiB", words.GiB(x.DiskMiB))
	case nodes.NoSharing:
		return "no node with such GPUs allows shares of a GPU: ask for a whole one"
	}
	return fmt.Sprintf("no node has %s (%s)", x.RankText(), largest)
}

func larger(a, b *Node) bool {
	if len(a.GPUs) != len(b.GPUs) {
		return len(a.GPUs) > len(b.GPUs)
	}
	return a.MilliCPU > b.MilliCPU
}

func firstName(k *nodes.Kind) string {
	name := ""
	for _, n := range k.Nodes {
		if !n.Gone && (name == "" || n.Name < name) {
			name = n.Name
		}
	}
	return name
}

func capacityText(n *Node, gpus nodes.GPUSet) string {
	model := "GPU"
	if g := gpus.Next(0); g >= 0 {
		model = n.GPUs[g].Model
	}
	return fmt.Sprintf("%d x %s, %s cores, %s GiB", gpus.Count(), model, words.Thousandths(n.MilliCPU), words.GiB(n.MemMiB))
}

// featuresText says what no node has, by the node that lacks the least.
func (r *round) featuresText(x *nodes.Shape) string {
	var least []string
	name := ""
	for _, nk := range r.s.index.Order {
		if l := x.Lacks(nk.Sample); x.On(nk).Why == nodes.LacksFeature && (name == "" || len(l) < len(least)) {
			least, name = l, firstName(nk)
		}
	}
	if len(x.Features)+len(x.AnyFeatures) == 1 {
		return "no node has the feature " + least[0]
	}
	return fmt.Sprintf("no node has all the features: nearest is %s, which lacks %s", name, strings.Join(least, " and "))
}
