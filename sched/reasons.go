package sched

import (
	"fmt"
	"slices"
	"strings"

	"gbatch/sched/nodes"
	"gbatch/sched/words"
)

// reasons is everything that keeps the job from starting.
func (ex *explainer) reasons(e *entry) []Reason {
	var out []Reason
	add := func(code Code, at Time, format string, args ...any) {
		out = append(out, Reason{Code: code, Text: fmt.Sprintf(format, args...), At: at})
	}
	c, kind := e.class, e.class.kind
	ranks := kind.Shape.Ranks()
	if hit, over := ex.usage.overLimit(c); over && !ex.reservedFor(e.id) {
		add(CodeLimit, 0, "%s", hit.text())
	}
	if e.since > ex.now {
		add(CodeBeginTime, e.since, "waits for its begin time")
	}
	planned, live := ex.liftPlan(kind)
	switch {
	case live.nodes < ranks:
		add(CodeNever, 0, "%s", neverText(ex.s.index, kind, live.nodes))
	case live.room >= ranks:
		if planned {
			add(CodePriority, 0, "%s", ex.priorityText(e))
		}
	case live.room+live.shut >= ranks:
		w := ex.s.index.Windows[live.window]
		add(CodeReservation, w.End, "%s and keeps it off %s with room", windowText(w, ex.now), words.Plural(live.shut, "node"))
	default:
		add(CodeResources, 0, "%s", live.resourcesText(kind.Shape))
	}
	slices.SortStableFunc(out, compareCodes)
	return out
}

// liftPlan counts the nodes as they were before the round started anything, and
// says whether the round leaves no room where there was some.
func (ex *explainer) liftPlan(kind *jobKind) (planned bool, live nodeCounts) {
	after := ex.find(kind) == nil
	log := ex.log
	for _, t := range slices.Backward(log) {
		for _, rank := range t.Held {
			rank.Node.Give(rank)
		}
	}
	live = countNodes(ex.s.index, kind, ex.now)
	for _, t := range log {
		for _, rank := range t.Held {
			rank.Node.Take(rank)
		}
	}
	return after, live
}

func (ex *explainer) priorityText(e *entry) string {
	ids, n := ex.before(e)
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

func windowText(w *Window, now Time) string {
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
func neverText(index *nodes.Index, kind *jobKind, matching int) string {
	shape := kind.Shape
	if matching > 0 {
		among := ""
		if shape.Choosy() {
			among = " among those that it allows by name"
		}
		return fmt.Sprintf("needs %d nodes that each have %s: there are %d%s", shape.Ranks(), shape.RankText(), matching, among)
	}
	most, named := nodes.FitsAll, !shape.Choosy()
	var near *nodes.Kind
	for _, nodeKind := range index.Order {
		has := slices.ContainsFunc(nodeKind.Nodes, func(n *nodes.Node) bool { return !n.Gone && shape.Named(n) })
		if !has {
			continue
		}
		named = true
		f := shape.On(nodeKind)
		if near == nil || f.Why > most || f.Why == most && larger(nodeKind.Sample, near.Sample) {
			most, near = f.Why, nodeKind
		}
	}
	switch {
	case !named:
		return shape.NamesText()
	case near == nil:
		return "there are no nodes"
	}
	models := index.Models()
	if len(models) == 0 && (most == nodes.LacksModel || most == nodes.FewGPUs) {
		return "no node has a GPU"
	}
	n := near.Sample
	largest := fmt.Sprintf("largest: %s on %s", capacityText(n, near.GPUs), firstName(near))
	switch most {
	case nodes.WrongCluster:
		return fmt.Sprintf("no node is in cluster %d", shape.Cluster)
	case nodes.LacksFeature:
		return featuresText(index, shape)
	case nodes.LacksModel:
		return fmt.Sprintf(`no node has gpuModel "%s" (models here: %s)`, strings.Join(shape.GPUModels, `" or "`), strings.Join(models, ", "))
	case nodes.LacksGPUMem:
		return fmt.Sprintf("no such GPU has %s GiB of memory", words.GiB(shape.GPUMemMiB))
	case nodes.LacksComputeCap:
		return fmt.Sprintf("no such GPU has compute capability %d.%d", shape.MinComputeCap/10, shape.MinComputeCap%10)
	case nodes.LacksCUDA:
		return fmt.Sprintf("no such node has CUDA %d.%d", shape.MinCUDA/100, shape.MinCUDA%100)
	case nodes.LacksDisk:
		return fmt.Sprintf("no such node has a disk of %s GiB", words.GiB(shape.DiskMiB))
	case nodes.NoSharing:
		return "no node with such GPUs allows shares of a GPU: ask for a whole one"
	}
	return fmt.Sprintf("no node has %s (%s)", shape.RankText(), largest)
}

func larger(a, b *Node) bool {
	if len(a.GPUs) != len(b.GPUs) {
		return len(a.GPUs) > len(b.GPUs)
	}
	return a.MilliCPU > b.MilliCPU
}

func firstName(nodeKind *nodes.Kind) string {
	name := ""
	for _, n := range nodeKind.Nodes {
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
func featuresText(index *nodes.Index, shape *nodes.Shape) string {
	var least []string
	name := ""
	for _, nodeKind := range index.Order {
		if l := shape.Lacks(nodeKind.Sample); shape.On(nodeKind).Why == nodes.LacksFeature && (name == "" || len(l) < len(least)) {
			least, name = l, firstName(nodeKind)
		}
	}
	if len(shape.Features)+len(shape.AnyFeatures) == 1 {
		return "no node has the feature " + least[0]
	}
	return fmt.Sprintf("no node has all the features: nearest is %s, which lacks %s", name, strings.Join(least, " and "))
}
