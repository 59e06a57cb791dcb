package sched

import (
	"fmt"
	"slices"
	"strings"

	"gbatch/sched/words"
)

// reasons is everything that keeps the job from starting.
func (ex *explainer) reasons(e *entry) []Reason {
	var out []Reason
	add := func(code Code, at Time, format string, args ...any) {
		out = append(out, Reason{Code: code, Text: fmt.Sprintf(format, args...), At: at})
	}
	c, kind := e.class, e.class.kind
	if hit, over := ex.usage.overLimit(c); over && !ex.reservedFor(e.id) {
		out = append(out, hit.reason())
	}
	if e.since > ex.now {
		add(CodeBeginTime, e.since, "waits for its begin time")
	}
	planned, live, way := ex.liftPlan(kind)
	switch live.code {
	case CodeNever, CodePartition:
		add(live.code, 0, "%s", live.never)
	case CodePriority:
		if planned {
			add(CodePriority, 0, "") // the text is made when all before it have a place
		}
	case CodeReservation:
		w := ex.s.index.Windows[live.Window]
		add(CodeReservation, w.Next(ex.now).End, "%s and keeps it off %s with room", words.Window(w, ex.now), words.Plural(live.Shut, way.Shape.Place()))
	default:
		add(CodeResources, 0, "%s", live.Words(way.Shape))
	}
	if lack := ex.calendar.lacking(kind.leastLimited()); lack.code != "" && !(lack.code == CodeNever && live.code == CodeNever) {
		add(lack.code, 0, "%s", lack.never)
	}
	slices.SortStableFunc(out, compareCodes)
	return out
}

// liftPlan is what keeps jobs of the kind off the nodes as they were before the
// round started anything, in the partition that is told of, and says whether the
// round leaves no room where there was some.
func (ex *explainer) liftPlan(kind *jobKind) (planned bool, live blocked, way *jobKind) {
	after := ex.findRoom(kind.leastLimited()) == nil
	log := ex.log
	for _, t := range slices.Backward(log) {
		for _, rank := range t.Held {
			rank.Node.Give(rank)
		}
	}
	live, way = ex.bestWay(kind.leastLimited())
	for _, t := range log {
		for _, rank := range t.Held {
			rank.Node.Take(rank)
		}
	}
	return after, live, way
}

func priorityText(ids []JobID, n int) string {
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
