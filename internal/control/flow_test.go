package control

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"gbatch/internal/control/amend"
	"gbatch/internal/control/depend"
	"gbatch/internal/control/idle"
	"gbatch/internal/job"
	"gbatch/internal/job/indexes"
	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
)

// flow sets what a scenario's job says about others and about its end:
//
//	deps=afterok:1?after:2+5 haltsignal=USR1 unwarned stopgrace=5 priority=-3 maxrun=3600 mintime=60 qos=high
//	cron=0_*_*_*_* in=gpu+cpu
func (w *world) flow(s *job.Spec, arg func(string, string) string, number func(string, string) int) {
	g := s.Gbatch
	if g == nil {
		g = &job.Gbatch{}
	}
	if text := arg("deps", ""); text != "" {
		deps, any, err := job.ParseDependencies(text)
		if err != nil {
			w.t.Fatal(err)
		}
		g.Dependencies, g.DependOnAny, s.Gbatch = deps, any, g
	}
	if text := arg("haltsignal", ""); text != "" {
		g.HaltSignal, s.Gbatch = text, g
	}
	if n := number("stopgrace", "0"); n > 0 {
		g.StopGrace, g.StopSignal, s.Gbatch = job.Duration(n), "INT", g
	}
	if n := number("priority", "0"); n != 0 {
		g.Priority, s.Gbatch = n, g
	}
	if q := arg("qos", ""); q != "" {
		g.QOS, s.Gbatch = q, g
	}
	if n := number("idlemin", "0"); n > 0 {
		g.IdleGPU, s.Gbatch = &job.IdleGPU{MinUtilization: n, Window: 300}, g
	}
	if names := arg("in", ""); names != "" {
		g.Partitions, s.Gbatch = strings.Split(names, "+"), g
	}
	if arg("replace", "") != "" {
		g.Replace, s.Gbatch = true, g
	}
	if line := arg("cron", ""); line != "" {
		g.Cron, s.Gbatch = []string{strings.ReplaceAll(line, "_", " ")}, g
	}
	sc := &s.Request.Scheduling
	sc.AllowHaltWithoutSignal = arg("unwarned", "") != ""
	if n := number("maxrun", "0"); n > 0 {
		sc.MaxDuration = job.Duration(n)
	}
	if n := number("mintime", "0"); n > 0 {
		sc.MinDuration = job.Duration(n)
	}
}

// steer is a step that steers a job:
//
//	requeue|halt 1 [by=op] | signal 1 name=USR1 | priority 1 to=-5 [operator] | update 1 [limit=SECONDS] [least=SECONDS] [job=NAME] [comment=TEXT] [operator]
//	ack 1 [stopping] [signalled=1] [rank=0]
//	load n1 gpu0=5 gpu1=900 times=12: permille, a sync every 25 s
//	chain 1
func (w *world) steer(cmd, first string, arg func(string, string) string, number func(string, string) int) (string, bool) {
	action, ok := map[string]Action{"requeue": Requeue, "requeuehold": RequeueHold, "halt": Halt, "signal": Signal, "priority": Update, "update": Update}[cmd]
	change := amend.Change{Name: arg("job", ""), Limit: sched.Time(number("limit", "0")) * 1000, Project: arg("project", ""), QOS: arg("qos", "")}
	if arg("least", "") != "" {
		l := sched.Time(number("least", "0")) * 1000
		change.LimitMin = &l
	}
	if text := arg("comment", ""); text != "" {
		change.Comment = &text
	}
	if to := number("to", "0"); cmd == "priority" {
		change.Priority = &to
	}
	switch {
	case ok:
		n := job.Number(atoi(w.t, first))
		return w.answer(w.apply(Act{Action: action, Numbers: []job.Number{n}, Move: Move{Documents: map[job.Number]*job.Spec{n: {}}, Stranger: change.Project == "secret" && arg("by", "") != "eve"}, By: arg("by", "ann"), Operator: arg("operator", "") != "", Signal: arg("name", ""), Change: change})), true
	case cmd == "load":
		v := w.c.nodes.get(first)
		for range max(number("times", "1"), 1) {
			w.now += 25 * sched.Second
			var list []idle.Load
			for i, g := range v.Inventory.GPUs {
				if p := number(fmt.Sprint("gpu", i), "-1"); p >= 0 {
					list = append(list, idle.Load{UUID: g.UUID, Permille: p})
				}
			}
			w.apply(NodeSync{Name: v.Name, Instance: v.Instance, Hash: v.Hash, Loads: list})
		}
		return w.queue(), true
	case cmd == "ack":
		j := w.c.jobs.get(job.Number(atoi(w.t, first)))
		r := j.Last().Ranks[number("rank", "0")]
		st := node.RankStatus{ID: j.RankID(number("rank", "0")), Phase: r.Phase, Stopping: arg("stopping", "") != "", Signalled: uint32(number("signalled", "0"))}
		v := w.c.nodes.get(r.Alloc.Node)
		w.apply(NodeSync{Name: v.Name, Instance: v.Instance, Hash: v.Hash, Ranks: []node.RankStatus{st}})
		return w.show(j.Number), true
	case cmd == "chain":
		j := w.c.jobs.get(job.Number(atoi(w.t, first)))
		out := fmt.Sprintf("next=%d document=%d ran=%d left=%d submitted=%d", j.Next, j.Document(), j.UsedRun/1000, j.LimitLeft()/1000, j.Submitted/1000)
		if r := j.Restart; r != nil {
			out += fmt.Sprintf(" continues=%d count=%d tries=%d initial=%x", r.Of, r.Count, r.Tries, r.Initial[:2])
		}
		return out + "\n", true
	}
	return "", false
}

// submit does as gctld does: it looks for jobs of the past and asks again.
func (w *world) submit(e Submit) any {
	a := w.apply(e)
	asked, ok := a.(Submitted)
	if !ok || len(asked.Past) == 0 {
		return a
	}
	e.Past = map[string]*state.Job{}
	for _, id := range asked.Past {
		n, ok := job.ParseNumber(id)
		parent, set, isTask := state.ParseTask(id)
		if p := w.past(parent); isTask && p != nil {
			e.Past[id], _ = p.PendingTask(set[0].First)
			for _, u := range w.stored { // one fits at most
				if u.Kind == state.KindUUID && u.Name == taskName(p, set) {
					n, ok = u.Job, true
				}
			}
		}
		if ok {
			e.Past[id] = w.past(n)
		}
	}
	return w.apply(e)
}

// past is a job of the table or of history.
func (w *world) past(n job.Number) *state.Job {
	if j := w.c.jobs.get(n); j != nil {
		return j
	}
	r, ok := w.stored[recordKey(state.Record{Kind: state.KindHistory, Job: n})]
	if !ok {
		return nil
	}
	j, err := state.DecodeJob(r.Value)
	if err != nil {
		w.t.Fatal(err)
	}
	return j
}

func taskName(p *state.Job, set indexes.Set) string {
	id := p.TaskUUID(set[0].First)
	return string(id[:])
}

// TestManyDependents: one job that many wait for, and a chain that fails from
// its beginning, are told in bounded steps, over a restart in the middle too.
func TestManyDependents(t *testing.T) {
	w := newWorld(t)
	w.cfg.MaxQueued = 10_000
	w.restart()
	w.node("n1", 4, gpus{}, "i1")
	send := func(name, deps string) {
		spec := &job.Spec{Name: name}
		spec.Request.Resources = job.Resources{CPUs: 4, CPUMemoryGB: 1}
		if deps != "" {
			spec.Gbatch = &job.Gbatch{}
			spec.Gbatch.Dependencies, _, _ = job.ParseDependencies(deps)
		}
		var id [16]byte
		copy(id[:], name)
		Apply(w.c, w.now, Submit{UUID: id, User: "ann", Project: "vision", Spec: spec, Document: []byte("{}")})
	}
	send("first", "")
	const most = maxNotified + 10
	for i := range most {
		send("d"+string(rune('a'+i%26))+string(rune('a'+i/26%26))+string(rune('a'+i/676)), "afterok:1")
	}
	send("chain", "afterok:2")
	w.check()
	w.apply(Act{Action: Cancel, Numbers: []job.Number{1}, By: "ann"})
	failed := func() (n int) {
		for j := range w.c.View(w.now).All() {
			if j.Reason == job.DependencyFailed {
				n++
			}
		}
		return n
	}
	if got := failed(); got != maxNotified {
		t.Fatalf("one step failed %d dependents, want %d", got, maxNotified)
	}
	if next := w.c.NextTick(w.now); next != w.now {
		t.Fatalf("the rest is not due at once: next tick %d, now %d", next, w.now)
	}
	w.apply(Tick{})
	if got := failed(); got != most+1 {
		t.Errorf("%d dependents failed, want %d", got, most+1)
	}
	if !reflect.DeepEqual(w.c.depends.Set, depend.NewSet()) {
		t.Errorf("left over: %+v", w.c.depends.Set)
	}
}

// TestSingletonNames: the index of names is kept only where somebody asks, and
// forgets jobs that have ended.
func TestSingletonNames(t *testing.T) {
	w := newWorld(t)
	spec := func(deps ...job.Dependency) *job.Spec {
		s := &job.Spec{Name: "same"}
		s.Request.Resources = job.Resources{CPUs: 1, CPUMemoryGB: 1}
		if len(deps) > 0 {
			s.Gbatch = &job.Gbatch{Dependencies: deps}
		}
		return s
	}
	send := func(id byte, s *job.Spec) {
		w.apply(Submit{UUID: [16]byte{id}, User: "ann", Project: "vision", Spec: s, Document: []byte("{}")})
	}
	send(1, spec())
	if !reflect.DeepEqual(w.c.depends.Set, depend.NewSet()) {
		t.Fatal("names are kept that nobody asked for")
	}
	send(2, spec(job.Dependency{Type: job.Singleton}))
	send(3, spec())
	send(4, spec(job.Dependency{Type: job.Singleton}))
	if got := w.c.jobs.get(4).Waits.Needs[0].Job; got != 3 {
		t.Fatalf("job 4 waits for %d, want 3", got)
	}
	for _, n := range []job.Number{3, 1} {
		w.apply(Act{Action: Cancel, Numbers: []job.Number{n}, By: "ann"})
	}
	if got := w.c.jobs.get(4).Waits.Needs[0].Job; got != 2 {
		t.Errorf("job 4 waits for %d, want 2, which must go before it", got)
	}
	if !w.c.jobs.get(2).Waits.Met {
		t.Error("job 2 waits still")
	}
	w.apply(Act{Action: Cancel, Numbers: []job.Number{2, 4}, By: "ann"})
	if w.c.depends.Earlier("same", "ann", 100, &w.c.jobs.table); !reflect.DeepEqual(w.c.depends.Set, depend.NewSet()) {
		t.Errorf("names are kept of jobs that have ended: %+v", w.c.depends.Set)
	}
}

// zoneOf is the zone that a job's time table names; nil if there is none.
func zoneOf(spec *job.Spec) *time.Location {
	if spec.Gbatch == nil || spec.Gbatch.CronZone == "" {
		return nil
	}
	return zoneByName(spec.Gbatch.CronZone)
}

func zoneByName(name string) *time.Location {
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil
	}
	return zone
}
