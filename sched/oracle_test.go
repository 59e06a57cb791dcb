package sched

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gbatch/sched/predict"
)

// The oracle is a second, naive scheduler: it holds every allocation and every
// reservation as an interval on a node, looks at every moment at which one
// ends, and at every node, for every job, in order. It does not choose places;
// it takes the plan's and proves that the plan was right to start what it
// starts, and could not have started, or planned sooner, what it does not.
type oracle struct {
	in   Input
	busy map[string][]interval // by node
	base map[string][]interval // of running jobs only
	runs []Running             // with those that the plan starts
	plan []promised            // jobs with a reservation
	lent []lent                // licences
}

type promised struct {
	job   Job
	at    Time
	milli int64
}

// span is from a start until before an end.
type span struct{ start, end Time }

type interval struct {
	start, end Time
	cpu, mem   int64
	disk       int64
	gpus       map[string]int64
	whole      bool
}

func newOracle(in Input) *oracle {
	o := &oracle{in: in, busy: map[string][]interval{}, base: map[string][]interval{}}
	p := in.State.policy
	for _, run := range in.State.running {
		end := run.End
		if pr := run.Job.Predicted; pr > 0 && byPrediction(p) {
			end = min(end, run.Start+predict.Lengthened(pr, in.Now-run.Start))
		}
		if run.Halting {
			end = min(end, in.Now+p.HaltGrace)
		}
		if end <= in.Now {
			end = in.Now + max(p.HaltGrace, 1)
		}
		o.runs = append(o.runs, run.Running)
		o.lend(run.Job.Shape, span{in.Now, end})
		for _, a := range run.Ranks {
			iv := holding(a, in.Now, end, run.Job.Shape)
			o.busy[a.Node] = append(o.busy[a.Node], iv)
			o.base[a.Node] = append(o.base[a.Node], iv)
		}
	}
	return o
}

func holding(a Allocation, start, end Time, s *Shape) interval {
	iv := interval{start, end, a.MilliCPU, a.MemMiB, a.DiskMiB, map[string]int64{}, s.AllGPUs || s.Exclusive}
	for _, g := range a.GPUs {
		iv.gpus[g.UUID] = g.Milli
	}
	return iv
}

func (o *oracle) nodes() []Node {
	var out []Node
	for _, n := range o.in.State.index.Nodes {
		if !n.Gone {
			out = append(out, n.Node)
		}
	}
	slices.SortFunc(out, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func (o *oracle) limitOf(j Job) (limit, estimate Time) {
	limit = j.Limit
	if limit == 0 {
		limit = o.in.State.policy.DefaultLimit
	}
	estimate = limit
	if byPrediction(o.in.State.policy) && j.Predicted > 0 {
		estimate = min(estimate, j.Predicted)
	}
	return limit, estimate
}

// expected is what candidates for backfill are ordered by.
func (o *oracle) expected(j Job) Time {
	limit, _ := o.limitOf(j)
	if j.Predicted > 0 {
		return min(j.Predicted, limit)
	}
	return limit
}

// kept is whether windows keep the job off the node from start on, and otherwise
// the GPUs that they keep it off.
func (o *oracle) kept(n Node, j Job, start Time) (all bool, gpus []string) {
	limit, _ := o.limitOf(j)
	for _, w := range o.in.State.index.Windows {
		admitted := slices.Contains(w.Projects, j.Project) || slices.Contains(w.Users, j.User)
		if len(w.Projects) == 0 && len(w.Users) == 0 {
			admitted = slices.Contains(j.Reservations, w.Name)
		}
		admitted = admitted && !w.Maintenance
		meets := slices.ContainsFunc(w.Spans(), func(s Span) bool { return s.Start < start+limit && s.End > start })
		if admitted || !slices.Contains(w.Nodes, n.Name) || !meets {
			continue
		}
		all = all || len(w.GPUs) == 0
		for _, g := range n.GPUs {
			if slices.Contains(w.GPUs, g.UUID) {
				all = all || j.Shape.AllGPUs || j.Shape.Exclusive
				gpus = append(gpus, g.UUID)
			}
		}
	}
	return all, gpus
}

// shut says whether windows leave a rank no room on a node during a span, beside
// the intervals given.
func (o *oracle) shut(n Node, j Job, held []interval, at span) bool {
	all, gpus := o.kept(n, j, at.start)
	return all || !fits(without(n, gpus), j.Shape, held, at)
}

// without is the node with some of its GPUs drained.
func without(n Node, gpus []string) Node {
	n.GPUs = slices.Clone(n.GPUs)
	for i, g := range n.GPUs {
		n.GPUs[i].Drained = g.Drained || slices.Contains(gpus, g.UUID)
	}
	return n
}

// stored says whether the node has all storage of the shape, and whether all of it
// is there now.
func stored(n Node, s *Shape) (now, ever bool) {
	now, ever = true, true
	for _, want := range s.Storage {
		var at *Root // that decides: the one with the longest name
		for i, r := range n.Storage {
			if strings.HasPrefix(want.Path+"/", r.Name+"/") && (at == nil || len(r.Name) > len(at.Name)) {
				at = &n.Storage[i]
			}
		}
		if n.Storage != nil {
			ever = ever && at != nil && !(want.Write && at.ReadOnly)
			now = now && ever && at.Away == ""
		}
	}
	return now, ever
}

// fits says whether a rank has room on a node during a span, beside the
// intervals given.
func fits(n Node, s *Shape, held []interval, during span) bool {
	start, end := during.start, during.end
	if now, _ := stored(n, s); !now || n.State == Drained || n.State == Down || !could(n, s) {
		return false
	}
	moments := []Time{start}
	whole := s.AllGPUs || s.Exclusive
	for _, iv := range held {
		if iv.start > start && iv.start < end {
			moments = append(moments, iv.start)
		}
	}
	free := map[string]bool{}
	usable := 0
	for _, g := range n.GPUs {
		if !g.Drained {
			usable++
			free[g.UUID] = suits(g, s)
		}
	}
	for _, t := range moments {
		cpu, mem, disk, used := n.MilliCPU, n.MemMiB, n.DiskMiB, map[string]int64{}
		for _, iv := range held {
			if iv.start > t || iv.end <= t {
				continue
			}
			if whole || iv.whole {
				return false
			}
			cpu, mem, disk = cpu-iv.cpu, mem-iv.mem, disk-iv.disk
			for g, m := range iv.gpus {
				used[g] += m
			}
		}
		if cpu < s.MilliCPU || mem < s.MemMiB || s.AllMem && mem < n.MemMiB || disk < s.DiskMiB {
			return false
		}
		for g := range free {
			if s.MilliGPU >= 1000 && used[g] > 0 || s.MilliGPU < 1000 && used[g]+s.MilliGPU > 1000 {
				free[g] = false
			}
		}
	}
	ok := 0
	for _, f := range free {
		if f {
			ok++
		}
	}
	if s.AllGPUs && (ok == 0 || ok < usable) {
		return false
	}
	return int64(ok)*1000 >= s.MilliGPU
}

// roomAt counts the nodes on which a rank has room from a moment on, in the
// partition where there are most.
func (o *oracle) roomAt(j Job, at Time) (most int) {
	_, estimate := o.limitOf(j)
	if !o.licensed(j, span{at, at + estimate}) {
		return 0
	}
	for _, way := range o.ways(j) {
		most = max(most, seats(way.Shape, o.nodes(), func(n Node, s *Shape) bool {
			one := way
			one.Shape = s
			return fits(n, s, o.busy[n.Name], span{at, at + estimate}) && !o.shut(n, one, o.busy[n.Name], span{at, at + estimate})
		}))
	}
	return most
}

// moments at which room may appear, up to a last one.
func (o *oracle) moments(until Time) []Time {
	out := []Time{o.in.Now}
	for _, all := range o.busy {
		for _, iv := range all {
			out = append(out, iv.end)
		}
	}
	for _, w := range o.in.State.index.Windows {
		for _, s := range w.Spans() {
			out = append(out, s.End)
		}
	}
	for _, x := range o.lent {
		out = append(out, x.end)
	}
	out = slices.DeleteFunc(out, func(t Time) bool { return t < o.in.Now || t >= until })
	slices.Sort(out)
	return slices.Compact(out)
}

// put takes the plan's place for a job, after proving that it is one.
func (o *oracle) put(j Job, ranks []Allocation, at Time) error {
	_, estimate := o.limitOf(j)
	seen := map[string]int{}
	byName := map[string]Node{}
	for _, n := range o.nodes() {
		byName[n.Name] = n
	}
	if !o.licensed(j, span{at, at + estimate}) {
		return fmt.Errorf("job %d has no licences at %d", j.ID, at)
	}
	if len(ranks) != j.Shape.Ranks() {
		return fmt.Errorf("job %d has %d ranks, wants %d", j.ID, len(ranks), j.Shape.Ranks())
	}
	if !o.together(j, ranks, func(string) bool { return true }) {
		return fmt.Errorf("job %d of partitions %q is put on nodes of several, or of one that is down: %v", j.ID, j.Shape.Partitions, ranks)
	}
	shapes, perNode := ranksOf(j.Shape), j.Shape.PerNode
	for i, a := range ranks {
		j := j
		j.Shape = shapes[i]
		n := byName[a.Node]
		if seen[a.Node]++; seen[a.Node] > max(perNode, 1) {
			return fmt.Errorf("job %d has %d ranks on %s", j.ID, seen[a.Node], a.Node)
		}
		if !fits(n, j.Shape, o.busy[a.Node], span{at, at + estimate}) || o.shut(n, j, o.busy[a.Node], span{at, at + estimate}) {
			return fmt.Errorf("job %d is put on %s at %d, where it has no room", j.ID, a.Node, at)
		}
		if err := o.rightAmount(n, j, a, span{at, at + estimate}); err != nil {
			return err
		}
		o.busy[a.Node] = append(o.busy[a.Node], holding(a, at, at+estimate, j.Shape))
	}
	o.lend(j.Shape, span{at, at + estimate})
	return nil
}

func (o *oracle) rightAmount(n Node, j Job, a Allocation, during span) error {
	s := j.Shape
	want := s.MilliGPU
	if s.AllGPUs || s.Exclusive {
		want = 0
		for _, g := range n.GPUs {
			if !g.Drained {
				want += 1000
			}
		}
		if a.MilliCPU != n.MilliCPU || a.MemMiB != n.MemMiB {
			return fmt.Errorf("job %d does not get all of %s", j.ID, n.Name)
		}
	} else if a.MilliCPU != s.MilliCPU || s.AllMem && a.MemMiB != n.MemMiB || !s.AllMem && a.MemMiB != s.MemMiB {
		return fmt.Errorf("job %d gets %d milli CPU and %d MiB", j.ID, a.MilliCPU, a.MemMiB)
	}
	if a.DiskMiB != s.DiskMiB {
		return fmt.Errorf("job %d gets %d MiB of disk", j.ID, a.DiskMiB)
	}
	if a.MilliGPU() != want {
		return fmt.Errorf("job %d gets %d GPU thousandths, wants %d", j.ID, a.MilliGPU(), want)
	}
	_, kept := o.kept(n, j, during.start)
	for _, share := range a.GPUs {
		if slices.Contains(kept, share.UUID) {
			return fmt.Errorf("job %d gets GPU %s, which a window keeps from it", j.ID, share.UUID)
		}
		i := slices.IndexFunc(n.GPUs, func(g GPU) bool { return g.UUID == share.UUID })
		if i < 0 || n.GPUs[i].Drained || want == s.MilliGPU && want > 0 && !suits(n.GPUs[i], s) {
			return fmt.Errorf("job %d gets GPU %s, which will not do", j.ID, share.UUID)
		}
		for _, iv := range o.busy[n.Name] {
			if iv.start < during.end && iv.end > during.start && iv.gpus[share.UUID]+share.Milli > 1000 {
				return fmt.Errorf("job %d gets GPU %s, which is in use then", j.ID, share.UUID)
			}
		}
	}
	return nil
}

// ordered is the jobs that may start, first the one to go first.
func (o *oracle) ordered() []Job {
	var out []Job
	prio := map[JobID]Factors{}
	for id, e := range o.in.State.waiting {
		j := e.job()
		if max(j.Submitted, j.NotBefore) > o.in.Now || j.Deadline() <= o.in.Now {
			continue
		}
		prio[id] = o.in.Priorities([]JobID{id})[id]
		out = append(out, j)
	}
	slices.SortFunc(out, func(a, b Job) int {
		pa, pb := prio[a.ID], prio[b.ID]
		if pa.Boosted != pb.Boosted {
			return boolInt(pb.Boosted) - boolInt(pa.Boosted)
		}
		by := cmp.Compare(pb.Total, pa.Total)
		if pa.Boosted {
			by = 0
		}
		return cmp.Or(by, cmp.Compare(a.Since(), b.Since()), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// prove goes through the queue and checks each of the plan's decisions.
func (o *oracle) prove(p *Plan) error {
	starts, plans := map[JobID]Start{}, map[JobID]Reservation{}
	for _, s := range p.Starts {
		starts[s.Job] = s
	}
	for _, r := range p.Reservations {
		plans[r.Job] = r
	}
	reserved := 0
	depth := (&round{policy: &o.in.State.policy}).depth()
	queue := o.ordered()
	for i := 0; i < len(queue); i++ {
		j := queue[i]
		start, starts := starts[j.ID]
		plan, planned := plans[j.ID]
		over := o.over(j, leastMilli(j.Shape))
		switch {
		case starts:
			if o.over(j, milliOf(start.Ranks)) {
				return fmt.Errorf("job %d starts over a limit", j.ID)
			}
			given, err := o.given(j, start.Limit)
			if err != nil {
				return err
			}
			if start.Limit > 0 && o.roomAt(j, o.in.Now) >= j.Shape.Ranks() {
				return fmt.Errorf("job %d starts with %d of its limit %d, and has room for all of it", j.ID, start.Limit, j.Limit)
			}
			if err := o.mostOf(j, given, start.Ranks); err != nil {
				return err
			}
			j = given
			if err := o.put(j, start.Ranks, o.in.Now); err != nil {
				return err
			}
			if !o.together(j, start.Ranks, func(p string) bool { return p == start.Partition }) {
				return fmt.Errorf("job %d of partitions %q is said to start in %q: %v", j.ID, j.Shape.Partitions, start.Partition, start.Ranks)
			}
			limit, _ := o.limitOf(j)
			o.runs = append(o.runs, Running{Job: j, Ranks: start.Ranks, Start: o.in.Now, End: o.in.Now + limit})
		case over:
			if planned {
				return fmt.Errorf("job %d is over a limit, and planned", j.ID)
			}
		case !planned && j.Shape.Whole() && o.tight(j): // which node it is decides whether it is over the limit
		case o.roomAt(j, o.in.Now) >= j.Shape.Ranks() || o.roomAt(o.brief(j), o.in.Now) >= j.Shape.Ranks():
			return fmt.Errorf("job %d (%+v) has room now, and does not start", j.ID, *j.Shape)
		case planned:
			for _, t := range o.moments(plan.At) {
				if o.roomAt(j, t) >= j.Shape.Ranks() || o.roomAt(o.brief(j), t) >= j.Shape.Ranks() {
					return fmt.Errorf("job %d is planned for %d, and has room at %d", j.ID, plan.At, t)
				}
			}
			given, err := o.given(j, plan.Limit)
			if err != nil {
				return err
			}
			if plan.Limit > 0 && o.roomAt(j, plan.At) >= j.Shape.Ranks() {
				return fmt.Errorf("job %d is planned with %d of its limit %d, and has room for all of it", j.ID, plan.Limit, j.Limit)
			}
			if err := o.put(given, plan.Ranks, plan.At); err != nil {
				return err
			}
			o.plan = append(o.plan, promised{j, plan.At, milliOf(plan.Ranks)})
			if reserved++; reserved == depth && o.in.State.policy.Mode == EasySJBF {
				slices.SortStableFunc(queue[i+1:], func(a, b Job) int {
					return cmp.Compare(o.expected(a), o.expected(b))
				})
			}
		case reserved < depth && !j.Interactive && o.ever(j):
			return fmt.Errorf("job %d is blocked, and has no reservation, with %d of %d given", j.ID, reserved, depth)
		}
	}
	return nil
}

// tight says that some limit on GPUs applies to the job: then the GPUs of a
// whole node may be too many, and which node it is decides.
func (o *oracle) tight(j Job) bool { return o.over(j, 1<<20) }

// ever says whether the job has room at some moment of the plan.
func (o *oracle) ever(j Job) bool {
	return slices.ContainsFunc(o.moments(Never), func(t Time) bool { return o.roomAt(o.brief(j), t) >= j.Shape.Ranks() })
}

// codeIn is that in one partition.
func (o *oracle) codeIn(j Job) Code {
	at := span{o.in.Now, o.in.Now + 1}
	fit := func(n Node, s *Shape) bool { return could(n, s) && fits(n, s, o.base[n.Name], at) }
	matching, room := seats(j.Shape, o.nodes(), could), seats(j.Shape, o.nodes(), fit)
	open := seats(j.Shape, o.nodes(), func(n Node, s *Shape) bool {
		one := j
		one.Shape = s
		return fit(n, s) && !o.shut(n, one, o.base[n.Name], at)
	})
	switch ranks := j.Shape.Ranks(); {
	case matching < ranks:
		return CodeNever
	case open >= ranks:
		return CodePriority
	case room >= ranks:
		return CodeReservation
	}
	return CodeResources
}

// byPrediction says that places are reserved by predictions, and not by limits.
func byPrediction(p Policy) bool {
	return p.Estimates == ByExact || p.Estimates == ByPredicted && p.Mode != Gbatch
}
