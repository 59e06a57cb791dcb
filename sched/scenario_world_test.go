package sched_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"gbatch/sched"
)

// epoch is moment 0 of scenarios.
const epoch sched.Time = 1_700_000_000_000

// scenario is a State with the time, and with what the owner of one does.
type scenario struct {
	state *sched.State
	now   sched.Time
	plan  sched.Plan
	last  sched.JobID // that was queued
}

// newScenario makes a world with the default policy but for what a JSON text changes.
func newScenario(policy string) (*scenario, error) {
	p := sched.DefaultPolicy()
	if policy != "" {
		if err := json.Unmarshal([]byte(policy), &p); err != nil {
			return nil, fmt.Errorf("read policy: %w", err)
		}
	}
	s, err := sched.New(p)
	return &scenario{state: s, now: epoch}, err
}

// do runs one command on its input lines and returns what is to be seen.
func (w *scenario) do(cmd string, args map[string]string, lines []string) (string, error) {
	if at, ok := args["at"]; ok {
		d, err := parseTime(at)
		if err != nil {
			return "", err
		}
		w.now = epoch + d
	}
	switch cmd {
	case "nodes":
		return "", each(lines, w.node)
	case "jobs":
		return "", each(lines, w.job)
	case "windows":
		return "", each(lines, w.window)
	case "run":
		w.plan = sched.Decide(w.input())
		return w.planText(), w.apply()
	case "held":
		return w.held(), nil
	case "end":
		return "", each(lines, func(l string) error { return w.one(l, w.state.End) })
	case "cancel":
		return "", each(lines, func(l string) error { return w.one(l, w.state.Dequeue) })
	case "explain":
		return w.explain(lines)
	case "advise":
		return w.advise(lines)
	}
	return "", fmt.Errorf("unknown command %q", cmd)
}

func each(lines []string, f func(string) error) error {
	for _, l := range lines {
		if l = strings.TrimSpace(l); l == "" {
			continue
		}
		if err := f(l); err != nil {
			return fmt.Errorf("%q: %w", l, err)
		}
	}
	return nil
}

func (w *scenario) input() sched.Input { return sched.Input{Now: w.now, State: w.state} }

func (w *scenario) one(line string, f func(sched.JobID) bool) error {
	id, err := strconv.ParseUint(line, 10, 64)
	if err == nil && !f(sched.JobID(id)) {
		err = fmt.Errorf("there is no such job")
	}
	return err
}

// apply does what the plan says.
func (w *scenario) apply() error {
	for _, r := range w.plan.Rejects {
		w.state.Dequeue(r.Job)
	}
	for _, st := range w.plan.Starts {
		j, _ := w.state.Waiting(st.Job)
		if err := w.state.Start(sched.Running{Job: j, Ranks: st.Ranks, Start: w.now}); err != nil {
			return err
		}
	}
	for _, h := range w.plan.Halts {
		w.state.Halting(h.Job)
	}
	return w.state.Check()
}

func (w *scenario) planText() string {
	var b strings.Builder
	for _, st := range w.plan.Starts {
		how := ""
		if st.Backfilled {
			how = " backfilled"
		}
		if st.Partition != "" {
			how += " in " + st.Partition
		}
		fmt.Fprintf(&b, "start %d%s on %s\n", st.Job, how, ranksText(st.Ranks))
	}
	for _, r := range w.plan.Reservations {
		fmt.Fprintf(&b, "plan %d at %s on %s\n", r.Job, w.when(r.At), ranksText(r.Ranks))
	}
	for _, h := range w.plan.Halts {
		fmt.Fprintf(&b, "halt %d for %d, losing %d GPU-minutes\n", h.Job, h.For, h.Lost/1000/int64(sched.Minute))
	}
	for _, r := range w.plan.Rejects {
		fmt.Fprintf(&b, "reject %d %s\n", r.Job, r.Reason)
	}
	if w.plan.Wake > 0 {
		fmt.Fprintf(&b, "wake at %s\n", w.when(w.plan.Wake))
	}
	return b.String()
}

func (w *scenario) when(t sched.Time) string {
	s := time.Duration(int64(t-epoch) * int64(time.Millisecond)).String()
	if short, ok := strings.CutSuffix(s, "m0s"); ok {
		return short + "m"
	}
	return s
}

// held is what each job holds, with cores and GiB.
func (w *scenario) held() string {
	var b strings.Builder
	for id := range w.last + 1 {
		if run, ok := w.state.Running(id); ok {
			for _, a := range run.Ranks {
				fmt.Fprintf(&b, "%d holds %d cores, %d GiB and %d GPUs of %s\n", id, a.MilliCPU/1000, a.MemMiB>>10, a.MilliGPU()/1000, a.Node)
			}
		}
	}
	return b.String()
}

func ranksText(ranks []sched.Allocation) string {
	var parts []string
	for _, a := range ranks {
		s := a.Node
		for i, g := range a.GPUs {
			s += []string{" ", ","}[min(i, 1)] + g.UUID[strings.LastIndexByte(g.UUID, '/')+1:]
			if g.Milli < 1000 {
				s += fmt.Sprintf("(%d)", g.Milli)
			}
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, "; ")
}

func (w *scenario) explain(lines []string) (string, error) {
	var b strings.Builder
	err := each(lines, func(l string) error {
		id, err := strconv.ParseUint(l, 10, 64)
		if err != nil {
			return err
		}
		x := sched.Explain(w.input(), sched.JobID(id))
		fmt.Fprintf(&b, "job %d: listed as %s\n", id, w.state.ReasonOf(&w.plan, sched.JobID(id)).Code)
		for _, r := range x.Estimate.Reasons {
			fmt.Fprintf(&b, "  %s\n", r)
		}
		if x.Estimate.Known {
			fmt.Fprintf(&b, "  starts at %s on %s\n", w.when(x.Estimate.At), ranksText(x.Estimate.Ranks))
		}
		for _, n := range x.Nodes {
			fmt.Fprintf(&b, "  %s: %s\n", n.Node, strings.TrimSpace(string(n.Code)+" "+n.Text))
		}
		return nil
	})
	return b.String(), err
}

func (w *scenario) advise(lines []string) (string, error) {
	var b strings.Builder
	err := each(lines, func(l string) error {
		id, err := strconv.ParseUint(l, 10, 64)
		for _, a := range sched.Advise(w.input(), sched.JobID(id)) {
			fmt.Fprintf(&b, "%s: starts at %s on %s\n", a.Change, w.when(a.At), strings.Join(a.Nodes, ", "))
		}
		return err
	})
	return b.String(), err
}

// fields of a line: a name, then key=value or bare words.
func fields(line string) (name string, kv map[string]string) {
	words := strings.Fields(line)
	kv = map[string]string{}
	for _, word := range words[1:] {
		k, v, ok := strings.Cut(word, "=")
		if !ok {
			v = "true"
		}
		kv[k] = v
	}
	return words[0], kv
}

// set is how the value of a key is taken.
type set map[string]func(string) error

func (s set) all(kv map[string]string) error {
	for _, k := range slices.Sorted(maps.Keys(kv)) {
		f := s[k]
		if f == nil {
			return fmt.Errorf("unknown key %q", k)
		}
		if err := f(kv[k]); err != nil {
			return fmt.Errorf("%s: %w", k, err)
		}
	}
	return nil
}

func number[T ~int | ~int64](to *T, unit T) func(string) error {
	return func(v string) error {
		x, err := strconv.ParseFloat(v, 64)
		*to = T(x * float64(unit))
		return err
	}
}

func text(to *string) func(string) error { return func(v string) error { *to = v; return nil } }
func flag(to *bool) func(string) error   { return func(v string) error { *to = v == "true"; return nil } }
func list(to *[]string) func(string) error {
	return func(v string) error { *to = strings.Split(v, ","); return nil }
}

// lists reads "a|b,c": several lists, each of alternatives.
func lists(to *[][]string) func(string) error {
	return func(v string) error {
		for one := range strings.SplitSeq(v, ",") {
			*to = append(*to, strings.Split(one, "|"))
		}
		return nil
	}
}

// roots reads "/project,/data:ro,/scratch:away", or "none".
func roots(to *[]sched.Root) func(string) error {
	return func(v string) error {
		*to = []sched.Root{}
		for one := range strings.SplitSeq(v, ",") {
			name, how, _ := strings.Cut(one, ":")
			r := sched.Root{Name: name, ReadOnly: how == "ro"}
			if how == "away" {
				r.Away = "does not answer"
			}
			if name != "none" {
				*to = append(*to, r)
			}
		}
		return nil
	}
}

// storage reads "/project/x,/data:w": what a job mounts, or writes.
func storage(to *[]sched.Storage) func(string) error {
	return func(v string) error {
		for one := range strings.SplitSeq(v, ",") {
			path, how, _ := strings.Cut(one, ":")
			*to = append(*to, sched.Storage{Path: path, Write: how == "w"})
		}
		return nil
	}
}

// groups reads "2x4xA100,1x0": nodes, GPUs of each and their model.
func groups(to *[]sched.Group) func(string) error {
	return func(v string) error {
		for one := range strings.SplitSeq(v, ",") {
			words := strings.SplitN(one, "x", 3)
			g := sched.Group{MilliCPU: 1000}
			if len(words) < 2 {
				return fmt.Errorf("want NODESxGPUS")
			}
			if len(words) > 2 {
				g.GPUModels = []string{words[2]}
			}
			if err := cmp.Or(number(&g.Nodes, 1)(words[0]), number(&g.MilliGPU, 1000)(words[1])); err != nil {
				return err
			}
			*to = append(*to, g)
		}
		return nil
	}
}

func moment(to *sched.Time) func(string) error {
	return func(v string) error {
		d, err := parseTime(v)
		*to = epoch + d
		return err
	}
}

func length(to *sched.Time) func(string) error {
	return func(v string) (err error) { *to, err = parseTime(v); return err }
}

func parseTime(v string) (sched.Time, error) {
	d, err := time.ParseDuration(v)
	return sched.Time(d.Milliseconds()), err
}

// node reads "n1 cpu=64 mem=256 gpus=8xH100 ...": cores and GiB.
func (w *scenario) node(line string) error {
	name, kv := fields(line)
	if kv["gone"] != "" {
		w.state.RemoveNode(name)
		return nil
	}
	n := sched.Node{Name: name, MilliCPU: 64_000, MemMiB: 256 << 10, CUDA: 1204}
	gpus, numa, bad, links := "", 4, "", ""
	gpuMem, cc := int64(80), 80
	err := set{
		"cpu": number(&n.MilliCPU, 1000), "mem": number(&n.MemMiB, 1024), "cluster": number(&n.Cluster, 1), "cuda": number(&n.CUDA, 1), "disk": number(&n.DiskMiB, 1024),
		"gpus": text(&gpus), "numa": number(&numa, 1), "bad": text(&bad), "links": text(&links), "gpumem": number(&gpuMem, 1), "cc": number(&cc, 1),
		"features": list(&n.Features), "in": list(&n.Partitions), "share": flag(&n.AllowShare), "apart": flag(&n.Apart), "switch": text(&n.Switch), "reason": text(&n.Reason), "storage": roots(&n.Storage),
		"state": func(v string) error { n.State = sched.NodeState(v); return nil },
	}.all(kv)
	if err != nil {
		return err
	}
	if gpus != "" {
		count, model, _ := strings.Cut(gpus, "x")
		c, err := strconv.Atoi(count)
		if err != nil {
			return err
		}
		for i := range c {
			g := sched.GPU{UUID: fmt.Sprintf("%s/%d", name, i), Model: model, MemMiB: gpuMem << 10, ComputeCap: cc, NUMA: i / numa}
			g.Drained = slices.Contains(strings.Split(bad, ","), strconv.Itoa(i))
			if pair := i ^ 1; links == "pairs" && pair < c {
				g.Links = []string{fmt.Sprintf("%s/%d", name, pair)}
			}
			n.GPUs = append(n.GPUs, g)
		}
	}
	return w.state.SetNode(n)
}

// job reads "1 user=ann gpus=4 limit=2h ...".
func (w *scenario) job(line string) error {
	name, kv := fields(line)
	id, err := strconv.ParseUint(name, 10, 64)
	if err != nil {
		return err
	}
	s := &sched.Shape{MilliCPU: 1000}
	j := sched.Job{ID: sched.JobID(id), Project: "lab", User: "ann", Shape: s, Submitted: w.now, Limit: sched.Hour}
	err = set{
		"user": text(&j.User), "project": text(&j.Project), "qos": text(&j.QOS), "name": text(&j.Name),
		"limit": length(&j.Limit), "min": length(&j.MinRun), "predicted": length(&j.Predicted), "priority": number(&j.Priority, 1),
		"after": moment(&j.NotBefore), "before": moment(&j.NotAfter), "maxqueued": length(&j.MaxQueued),
		"interactive": flag(&j.Interactive), "restartable": flag(&j.Restartable), "bucket": text(&j.Bucket), "bucketmax": number(&j.BucketMax, 1),
		"reservations": list(&j.Reservations), "submitted": moment(&j.Submitted),
		"nodes": number(&s.Nodes, 1), "gpus": number(&s.MilliGPU, 1000), "all": flag(&s.AllGPUs), "cpu": number(&s.MilliCPU, 1000), "mem": number(&s.MemMiB, 1024),
		"exclusive": flag(&s.Exclusive), "allmem": flag(&s.AllMem), "cluster": number(&s.Cluster, 1), "node": text(&s.Node), "model": list(&s.GPUModels),
		"gpumem": number(&s.GPUMemMiB, 1024), "cuda": number(&s.MinCUDA, 1), "disk": number(&s.DiskMiB, 1024), "cc": number(&s.MinComputeCap, 1), "features": list(&s.Features),
		"in": list(&s.Partitions), "names": list(&s.NodeNames), "exclude": list(&s.ExcludeNodes), "any": lists(&s.AnyFeatures), "groups": groups(&s.Groups), "pernode": number(&s.PerNode, 1), "storage": storage(&s.Storage),
	}.all(kv)
	w.last = max(w.last, j.ID)
	return cmp.Or(err, w.state.Enqueue(j))
}

// spans reads "24h-26h,48h-50h".
func spans(to *[]sched.Span) func(string) error {
	return func(v string) error {
		for one := range strings.SplitSeq(v, ",") {
			from, until, _ := strings.Cut(one, "-")
			var s sched.Span
			if err := cmp.Or(moment(&s.Start)(from), moment(&s.End)(until)); err != nil {
				return err
			}
			*to = append(*to, s)
		}
		return nil
	}
}

// window reads "w1 start=1h end=2h nodes=n1,n2 maintenance".
func (w *scenario) window(line string) error {
	name, kv := fields(line)
	win := sched.Window{Name: name}
	err := set{
		"start": moment(&win.Start), "end": moment(&win.End), "nodes": list(&win.Nodes), "count": number(&win.Count, 1),
		"gpus": list(&win.GPUs), "each": number(&win.GPUsPerNode, 1),
		"more": spans(&win.More), "projects": list(&win.Projects), "users": list(&win.Users), "maintenance": flag(&win.Maintenance), "model": list(&win.Match.GPUModels),
	}.all(kv)
	return cmp.Or(err, w.state.Reserve(win))
}
