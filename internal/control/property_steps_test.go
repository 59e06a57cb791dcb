package control

import (
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"gbatch/internal/control/amend"
	"gbatch/internal/control/launches"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
)

// rareSteps are what users, operators and nodes do now and then.
var rareSteps = map[string]func(*world, *rapid.T){
	"submit one that depends on others": func(w *world, rt *rapid.T) {
		w.submit(Submit{UUID: randomUUID(rt), User: "ann", Project: "vision", Spec: randomSpec(rt), Document: []byte("{}"), Hold: rapid.Bool().Draw(rt, "hold"), Zone: time.UTC, Sealed: rapid.SampledFrom([][]byte{nil, []byte("s")}).Draw(rt, "sealed"), Secrets: true})
	},
	"any act": func(w *world, rt *rapid.T) {
		n := job.Number(rapid.IntRange(1, 20).Draw(rt, "job"))
		a := rapid.SampledFrom([]Action{Cancel, Hold, UHold, Release, Pause, Resume, Requeue, RequeueHold, Halt, Signal, Update}).Draw(rt, "action")
		w.apply(Act{Action: a, Numbers: []job.Number{n}, By: rapid.SampledFrom([]string{"ann", "op"}).Draw(rt, "by"), Operator: rapid.Bool().Draw(rt, "operator"), Signal: rapid.SampledFrom([]string{"USR1", "KILL"}).Draw(rt, "signal"),
			Change: randomChange(rt), Move: Move{Documents: map[job.Number]*job.Spec{n: {}}}})
	},
	"forget a node": func(w *world, rt *rapid.T) {
		w.apply(Forget{Node: randomNode(rt), By: "op", GiveUpJobs: rapid.Bool().Draw(rt, "give up")})
	},
	"come": func(w *world, rt *rapid.T) { // also after it was forgotten
		i := rapid.IntRange(0, 2).Draw(rt, "node")
		w.node(fmt.Sprint("n", i), rapid.IntRange(2, 4).Draw(rt, "cpus"), gpus{rapid.IntRange(0, i).Draw(rt, "gpus"), "H100"}, "one")
	},
	"restore": func(w *world, rt *rapid.T) {
		w.restart()
		w.apply(Restored{Skip: 2, Queue: rapid.Bool().Draw(rt, "queue"), NoVault: rapid.Bool().Draw(rt, "no vault"), Late: rapid.Bool().Draw(rt, "late")})
	},
	"drain": func(w *world, rt *rapid.T) {
		w.apply(Drain{Node: randomNode(rt), GPU: rapid.SampledFrom([]string{"", "", "0", "1"}).Draw(rt, "GPU"), Reason: rapid.SampledFrom([]string{"", "dust"}).Draw(rt, "reason"), By: "op",
			Evict: rapid.Bool().Draw(rt, "evict"), EvictAt: rapid.SampledFrom([]sched.Time{0, w.now + sched.Minute}).Draw(rt, "at"), Reboot: rapid.Bool().Draw(rt, "reboot")})
	},
	"silence": func(w *world, rt *rapid.T) { // of all nodes but one
		talks := randomNode(rt)
		for range 4 {
			w.now += 90 * sched.Second
			w.word(talks, nil)
			w.apply(Tick{})
		}
	},
	"boot": func(w *world, rt *rapid.T) {
		w.word(randomNode(rt), func(e *NodeSync) {
			e.Boot, e.Checked = rapid.SampledFrom([]string{"", "one", "two"}).Draw(rt, "boot"), rapid.Bool().Draw(rt, "checked")
			e.Knows = rapid.SampledFrom([]sched.Time{0, w.now, w.now - sched.Hour}).Draw(rt, "knows")
			e.Unhealthy = rapid.SampledFrom([][]string{nil, {"dust"}}).Draw(rt, "unhealthy")
			e.Again = rapid.Bool().Draw(rt, "again")
			if rapid.Bool().Draw(rt, "forgets") {
				e.Seen = w.c.nodes.get(e.Name).Version
				return
			}
			e.Ranks = w.ranksOf(e.Name)
		})
	},
	"alive": func(w *world, rt *rapid.T) {
		if n := w.c.nodes.get(randomNode(rt)); n != nil {
			applyTo(w, NodeAlive{Name: n.Name, Instance: n.Instance, Boot: n.Boot, Ranks: w.ranksOf(n.Name)})
		}
	},
	"signals were sent": func(w *world, rt *rapid.T) {
		name := randomNode(rt)
		w.word(name, func(e *NodeSync) {
			e.Ranks = w.ranksOf(name)
			for i := range e.Ranks {
				e.Ranks[i].Signalled, e.Ranks[i].Stopping = uint32(rapid.IntRange(0, 2).Draw(rt, "signalled")), rapid.Bool().Draw(rt, "stopping")
			}
		})
	},
	"step": func(w *world, rt *rapid.T) {
		j := w.c.jobs.get(job.Number(rapid.IntRange(1, 20).Draw(rt, "job")))
		if j == nil || j.Last() == nil {
			return
		}
		e := Launch{Node: j.Last().Ranks[0].Alloc.Node, Rank: j.RankID(0), UUID: j.Identity(), End: launches.End{Number: uint32(rapid.IntRange(0, 2).Draw(rt, "step"))}}
		switch rapid.IntRange(0, 2).Draw(rt, "what") {
		case 0:
			e.Begin = &state.Launch{Key: fmt.Sprint(rapid.IntRange(0, 3).Draw(rt, "key")), Name: "x", Tasks: 1, CPUs: 1, Ranks: []int{0}}
		case 1:
			applyTo(w, CancelLaunch{Job: j.Number, Number: e.End.Number, By: "ann"})
			return
		}
		applyTo(w, e)
	},
	"secrets": func(w *world, rt *rapid.T) {
		w.apply(SetSecrets{Number: job.Number(rapid.IntRange(1, 20).Draw(rt, "job")), Base: uint32(rapid.IntRange(0, 2).Draw(rt, "base")), Sealed: []byte("more"), Names: []string{"a"}, By: "ann"})
	},
	"configure": func(w *world, rt *rapid.T) {
		w.cfg.KeepCount = rapid.SampledFrom([]int{100, 2}).Draw(rt, "kept")
		w.cfg.RunsAlone = rapid.SampledFrom([][]string{{"alone"}, nil}).Draw(rt, "alone")
		w.cfg.Policy.User.Running = rapid.SampledFrom([]int{0, 1}).Draw(rt, "running")
		w.apply(Reconfigure{w.cfg})
	},
	"what cannot be read": func(w *world, rt *rapid.T) {
		if j := w.c.jobs.get(job.Number(rapid.IntRange(1, 20).Draw(rt, "job"))); j != nil && j.Last() != nil {
			applyTo(w, Unreadable{Job: j.Number, Attempt: j.Try(), Text: "its document"})
		}
	},
}

var rareNames = func() (names []string) {
	for name := range rareSteps {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}()

func randomNode(rt *rapid.T) string { return fmt.Sprint("n", rapid.IntRange(0, 2).Draw(rt, "node")) }

func randomUUID(rt *rapid.T) [16]byte {
	return [16]byte{byte(rapid.IntRange(0, 30).Draw(rt, "uuid")), 1}
}

// word is one of a node that is there.
func (w *world) word(name string, more func(*NodeSync)) {
	n := w.c.nodes.get(name)
	if n == nil {
		return
	}
	e := NodeSync{Name: name, Instance: n.Instance, Boot: n.Boot, Hash: n.Hash, Ranks: w.ranksOf(name)}
	if more != nil {
		e.Ranks = nil
		more(&e)
	}
	w.apply(e)
}

// ranksOf is what a node says of its ranks that are as the controller knows them.
func (w *world) ranksOf(name string) (all []node.RankStatus) {
	for _, num := range w.c.nodes.get(name).Jobs {
		j := w.c.jobs.get(num)
		for i, r := range j.Attempt.Ranks {
			if r.Alloc.Node == name && r.Phase != node.PhaseEnded && r.Phase != node.PhaseAssigned {
				all = append(all, node.RankStatus{ID: j.RankID(i), Phase: r.Phase})
			}
		}
	}
	return all
}

// randomSpec is a job that says when it may start, how it ends, or who goes before whom.
func randomSpec(rt *rapid.T) *job.Spec {
	s := &job.Spec{Name: rapid.SampledFrom([]string{"x", "y"}).Draw(rt, "name"), Gbatch: &job.Gbatch{}}
	s.Request.Resources = job.Resources{CPUs: rapid.IntRange(1, 4).Draw(rt, "cpus"), GPUs: float64(rapid.IntRange(0, 2).Draw(rt, "gpus")), CPUMemoryGB: 1}
	sc, g := &s.Request.Scheduling, s.Gbatch
	sc.Restartable, sc.AllowHaltWithoutSignal = rapid.Bool().Draw(rt, "restartable"), rapid.Bool().Draw(rt, "unwarned")
	sc.MaxDuration = job.Duration(rapid.SampledFrom([]int{0, 300}).Draw(rt, "limit"))
	g.QOS = rapid.SampledFrom([]string{"", "alone", "high", "scavenge"}).Draw(rt, "qos")
	g.Nodes = rapid.SampledFrom([]int{0, 0, 2}).Draw(rt, "nodes")
	if g.Nodes > 0 {
		g.StopWhen = rapid.SampledFrom([]string{"", job.MasterDone}).Draw(rt, "stop")
	}
	if text := rapid.SampledFrom([]string{"", "afterok:1", "after:2+1", "afterany:3", "afternotok:4", "singleton", "aftercorr:5", "afterok:6?afterany:7"}).Draw(rt, "depends"); text != "" {
		deps, any, err := job.ParseDependencies(text)
		if err != nil {
			rt.Fatal(err)
		}
		g.Dependencies, g.DependOnAny = deps, any
	}
	switch rapid.IntRange(0, 6).Draw(rt, "more") {
	case 0:
		g.Cron = []string{"*/2 * * * *"}
		g.Dependencies = nil
	case 1:
		g.Replace = true
	case 2:
		g.MaxQueued = 60
	case 3:
		return withTasks(rt, s)
	}
	return s
}

func withTasks(rt *rapid.T, s *job.Spec) *job.Spec {
	s.Gbatch = randomTasks(rt, s.Gbatch)
	if s.Request.Scheduling.MaxDuration == 0 {
		s.Request.Scheduling.MaxDuration = 300
	}
	return s
}

func randomChange(rt *rapid.T) amend.Change {
	minute, three := sched.Minute, 3
	return rapid.SampledFrom([]amend.Change{{Name: "z"}, {Limit: 200 * sched.Second}, {Limit: sched.Day}, {LimitMin: &minute}, {Priority: &three}, {QOS: "high"}, {QOS: "alone"}, {Project: "secret"}, {Comment: new(string)}}).Draw(rt, "change")
}
