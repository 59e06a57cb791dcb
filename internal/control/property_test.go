package control

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gbatch/internal/control/effects"
	"gbatch/internal/control/standby"
	"gbatch/internal/job"
	"gbatch/internal/job/indexes"
	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
)

// TestAnyHistory drives the controller through random histories. After every
// step all invariants hold; a restart from the records at any point gives the
// same jobs, and so does one that follows and takes up; a task never has two live attempts; a final job never changes.
func TestAnyHistory(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		w.warm, w.fatal = standby.New(), rt.Fatal
		w.cfg.Policy.QOS = map[string]sched.QOS{"alone": {}, "high": {Priority: 1000, Preempts: []string{"scavenge"}}, "scavenge": {}}
		w.apply(Reconfigure{w.cfg})
		final := map[job.Number]string{}
		for i := range 3 {
			w.node(fmt.Sprintf("n%d", i), 4, gpus{i, "H100"}, "one")
		}
		steps := rapid.IntRange(1, 60).Draw(rt, "steps")
		for range steps {
			w.randomStep(rt)
			for j := range w.c.View(w.now).All() {
				if !j.State.Final() {
					continue
				}
				text := string(j.Encode())
				if old, ok := final[j.Number]; ok && old != text {
					rt.Fatalf("final job %d changed:\n%s", j.Number, gocmp.Diff(old, text))
				}
				final[j.Number] = text
			}
		}
	})
}

func (w *world) randomStep(rt *rapid.T) {
	switch rapid.SampledFrom([]string{"submit", "submit", "schedule", "schedule", "status", "status", "status", "status", "act", "act on tasks", "wait", "restart", "take up", "lose", "lose", "reinstall", "reserve", "unreserve", "resize", "resize", "rare", "rare", "rare", "rare", "rare"}).Draw(rt, "step") {
	case "submit":
		spec := &job.Spec{Name: "x"}
		spec.Request.Resources = job.Resources{CPUs: rapid.IntRange(1, 5).Draw(rt, "cpus"), GPUs: float64(rapid.IntRange(-1, 2).Draw(rt, "gpus")), CPUMemoryGB: 1}
		spec.Request.Scheduling.Restartable = rapid.Bool().Draw(rt, "restartable")
		if rapid.Bool().Draw(rt, "gang") {
			spec.Gbatch = &job.Gbatch{Nodes: 2, RanksPerNode: rapid.IntRange(0, 2).Draw(rt, "ranks on a node")}
			if spec.Request.Resources.GPUs < 0 {
				spec.Gbatch.RanksPerNode = 0
			}
		}
		if rapid.Bool().Draw(rt, "retries") {
			spec.Gbatch = randomTasks(rt, cmp.Or(spec.Gbatch, &job.Gbatch{}))
			spec.Request.Scheduling.MaxDuration = 300
		}
		id := [16]byte{byte(rapid.IntRange(0, 30).Draw(rt, "uuid")), 1}
		w.apply(Submit{UUID: id, User: "ann", Project: "vision", Spec: spec, Document: []byte("{}")})
	case "schedule":
		w.schedule()
	case "status":
		w.randomStatus(rt)
	case "act":
		a := rapid.SampledFrom([]Action{Cancel, Hold, Release}).Draw(rt, "action")
		w.apply(Act{Action: a, Numbers: []job.Number{job.Number(rapid.IntRange(1, 20).Draw(rt, "job"))}, By: "ann"})
	case "act on tasks":
		a := rapid.SampledFrom([]Action{Cancel, Cancel, Hold, Release, Pause, Resume}).Draw(rt, "action")
		first := rapid.IntRange(0, 4).Draw(rt, "first")
		w.apply(ActTasks{Act: Act{Action: a, By: "ann"}, Parent: job.Number(rapid.IntRange(1, 20).Draw(rt, "job")),
			Indexes: indexes.Set{{First: first, Last: first + rapid.IntRange(0, 2).Draw(rt, "more")}}})
	case "wait":
		w.now += sched.Time(rapid.IntRange(1, 400).Draw(rt, "seconds")) * sched.Second
		w.apply(Tick{})
	case "restart":
		before := w.jobs()
		w.restart()
		if diff := gocmp.Diff(before, w.jobs()); diff != "" {
			rt.Fatalf("jobs after a restart differ (-before +after):\n%s", diff)
		}
	case "take up":
		w.takeUp(rt)
	case "lose":
		w.lose(rt)
	case "reserve":
		w.apply(Reserve{Window: sched.Window{Name: "w", Start: w.now, End: w.now + sched.Time(rapid.IntRange(1, 600).Draw(rt, "seconds"))*sched.Second,
			Nodes: []string{"n1"}, GPUsPerNode: rapid.IntRange(0, 2).Draw(rt, "GPUs kept"), Maintenance: true}, Every: rapid.SampledFrom([]*state.Every{nil, {Cron: "*/20 * * * *"}}).Draw(rt, "again"), Zone: time.UTC})
	case "unreserve":
		w.apply(Unreserve{Name: "w", Once: rapid.Bool().Draw(rt, "once")})
	case "resize":
		w.apply(Resize{Number: job.Number(rapid.IntRange(1, 20).Draw(rt, "job")), By: "ann",
			MilliCPU: int64(rapid.IntRange(0, 4).Draw(rt, "cores")) * 1000, MemMiB: int64(rapid.IntRange(0, 40).Draw(rt, "GiB")) << 10})
	case "rare":
		rareSteps[rapid.SampledFrom(rareNames).Draw(rt, "rare step")](w, rt)
	case "reinstall":
		w.node("n1", 4, gpus{1, "H100"}, rapid.SampledFrom([]string{"one", "two"}).Draw(rt, "instance"))
	}
}

// takeUp has one that followed go on, which knows all that one does that was started anew, and decides the same.
func (w *world) takeUp(rt *rapid.T) {
	w.epoch++
	follower, err := Of(w.cfg, w.epoch, w.warm)
	if err != nil {
		rt.Fatal(err)
	}
	w.warm = standby.New()
	for _, k := range slices.Sorted(maps.Keys(w.stored)) {
		r := w.stored[k]
		if r.Kind == state.KindJob {
			err = w.warm.Put(r.Job, r.Value) // for the next time
		} else {
			err = follower.Load(r)
		}
		if err != nil {
			rt.Fatal(err)
		}
	}
	if err := errors.Join(follower.Loaded(w.now), follower.Check()); err != nil {
		rt.Fatal(err)
	}
	w.epoch-- // both begin at the same
	w.restart()
	what := func(c *Controller) (string, string, effects.Set, []sched.Reservation) {
		first := c.View(w.now)
		eff := c.Schedule(w.now)
		plan, _ := c.Plan()
		return everything(first), everything(c.View(w.now)), eff, plan.Reservations
	}
	was, is, did, plans := what(w.c)
	gotWas, gotIs, gotDid, gotPlans := what(follower)
	if diff := gocmp.Diff(was, gotWas) + gocmp.Diff(is, gotIs) + gocmp.Diff(plans, gotPlans); diff != "" {
		rt.Fatalf("what one has that followed (-started anew +followed):\n%s", diff)
	}
	if diff := gocmp.Diff(did.Records, gotDid.Records); diff != "" {
		rt.Fatalf("what one stores that followed (-started anew +followed):\n%s", diff)
	}
	w.store(did)
}

// lose has the controller lead no more after a turn that was decided and not published, and of which it is not known whether
// it was stored. What it goes on with is what its store has.
func (w *world) lose(rt *rapid.T) {
	published := w.c.View(w.now)
	kept := map[string]state.Record{}
	maps.Copy(kept, w.stored)
	warm := w.warm
	w.warm = nil // it does not follow
	for range rapid.IntRange(0, 3).Draw(rt, "unpublished") {
		if rapid.Bool().Draw(rt, "told of a rank") {
			w.randomStatus(rt)
		} else {
			w.schedule()
		}
	}
	changed := map[job.Number]bool{}
	for k, r := range w.stored {
		changed[r.Job] = changed[r.Job] || string(kept[k].Value) != string(r.Value)
	}
	if rapid.Bool().Draw(rt, "not stored") {
		w.stored = kept
	}
	left, unread, err := w.c.Left(published)
	if err != nil {
		rt.Fatal(err)
	}
	for _, n := range append(unread, slices.Sorted(maps.Keys(changed))...) {
		r := w.stored[recordKey(state.Record{Kind: state.KindJob, Job: n})]
		if err := left.Put(n, r.Value); err != nil {
			rt.Fatal(err)
		}
	}
	loaded := standby.New()
	for _, k := range slices.Sorted(maps.Keys(w.stored)) {
		if r := w.stored[k]; r.Kind == state.KindJob {
			if err := loaded.Put(r.Job, r.Value); err != nil {
				rt.Fatal(err)
			}
		}
	}
	if diff := gocmp.Diff(standbyText(loaded), standbyText(left)); diff != "" {
		rt.Fatalf("what one has that leads no more (-loaded +kept):\n%s", diff)
	}
	if w.warm = left; warm == nil {
		rt.Fatal("nobody followed")
	}
	w.restart()
}

// standbyText is all that jobs are.
func standbyText(jobs *standby.Jobs) string {
	var b strings.Builder
	for j := range jobs.Table.All() {
		waiting, waits := jobs.Sched.Waiting(sched.JobID(j.Number))
		shape := waiting.Shape
		waiting.Shape = nil
		if j.Last() != nil {
			for _, r := range j.Last().Ranks {
				fmt.Fprint(&b, r.Progress, " ")
			}
		}
		fmt.Fprintf(&b, "%s %v %t %t %+v %s\n", j.Encode(), j.Ref, j.Tasks != nil && j.Tasks.Array != nil, waits, waiting, state.Encode(shape))
		fmt.Fprintln(&b, jobs.ByUUID[j.UUID] == j.Number)
	}
	return fmt.Sprint(b.String(), len(jobs.ByUUID))
}

// jobs is all jobs as they are stored, to compare controllers by.
func (w *world) jobs() string {
	var b bytes.Buffer
	for j := range w.c.View(w.now).All() {
		text := j.Encode()
		if j.Shown {
			text = w.stored[recordKey(state.Record{Kind: state.KindJob, Job: j.Number})].Value
		}
		fmt.Fprintf(&b, "%s\n", text)
	}
	return b.String()
}

// everything is a view, and its jobs and nodes as they would be stored.
func everything(v *state.View) string {
	var b strings.Builder
	fmt.Fprintln(&b, viewText(v), v.Next)
	for j := range v.All() {
		fmt.Fprintf(&b, "%s %v\n", j.Encode(), j.Ref.Since)
	}
	for n := range v.Nodes.All() {
		fmt.Fprintf(&b, "%s %d %v\n", state.Encode(n), n.Version, n.Past)
	}
	return b.String()
}

func (w *world) randomStatus(rt *rapid.T) {
	n := job.Number(rapid.IntRange(1, 20).Draw(rt, "job"))
	j := w.c.jobs.get(n)
	if j == nil || j.Last() == nil {
		return
	}
	i := rapid.IntRange(0, len(j.Last().Ranks)-1).Draw(rt, "rank")
	id := j.RankID(i)
	id.Attempt -= uint32(rapid.IntRange(0, 1).Draw(rt, "old"))
	st := node.RankStatus{ID: id, Phase: rapid.SampledFrom([]node.Phase{node.PhaseAccepted, node.PhasePulling, node.PhaseStarting, node.PhaseRunning, node.PhaseEnded, "nonsense"}).Draw(rt, "phase")}
	st.Progress = rapid.SampledFrom([]string{"", "half"}).Draw(rt, "progress")
	st.Done = rapid.SampledFrom([]*node.Done{nil, {Percent: 7}}).Draw(rt, "done")
	if q := j.Last().Ranks[i].Resize; q != nil && rapid.Bool().Draw(rt, "resized") {
		st.Resize = &node.Resized{Seq: q.Seq, Error: rapid.SampledFrom([]string{"", "no"}).Draw(rt, "refused")}
	}
	if st.Phase == node.PhaseEnded && rapid.Bool().Draw(rt, "exit") {
		st.Exit = &node.Exit{EndedMS: int64(w.now)}
		if rapid.Bool().Draw(rt, "began") {
			st.Exit.StartedMS = int64(w.now)
		}
		if rapid.Bool().Draw(rt, "fails") {
			st.Exit.Code, st.Exit.Reason = 1, rapid.SampledFrom([]job.Reason{job.ExitCode, job.NodeFail, job.OOM, job.Server, job.MaxRuntime}).Draw(rt, "reason")
		}
	}
	host := w.c.nodes.get(j.Last().Ranks[i].Alloc.Node)
	if host == nil { // it was forgotten
		return
	}
	w.apply(NodeSync{Name: host.Name, Instance: host.Instance, Hash: host.Hash, Ranks: []node.RankStatus{st}})
}

// randomTasks makes a job one that is tried again, or an array, or both.
func randomTasks(rt *rapid.T, g *job.Gbatch) *job.Gbatch {
	two := 2
	g.Notify = rapid.SampledFrom([][]job.Notify{nil, {{To: "ann@example.org", On: []string{"limit-50", "limit-90"}}}}).Draw(rt, "notify")
	g.Retry = rapid.SampledFrom([]*job.Retry{nil, {Limit: 1}, {Limit: 3, JobLimit: &two}, {Window: 60}, {Rules: []job.RetryRule{{ExitCodes: []int{1}, Action: job.Ignore}}},
		{Limit: 2, Rules: []job.RetryRule{{Reasons: []job.Reason{job.OOM}, Action: job.FailJob}}}}).Draw(rt, "retry")
	g.LimitScope = rapid.SampledFrom([]string{job.LimitTotal, job.LimitAttempt, job.LimitJob}).Draw(rt, "scope")
	g.Tasks = rapid.SampledFrom([]*job.Tasks{nil, {Indexes: "0-5"}, {Indexes: "0-700", Parallelism: 2}, {Indexes: "1,4-6", FailFast: true}, {Indexes: "0-5", MaxFailed: &two, Parallelism: 1},
		{Indexes: "0-9", EnoughIndexes: "1-3", EnoughCount: 2}, {Indexes: "3"}, {Indexes: "0-20", Reuse: true}, {Indexes: "0-20", Reuse: true, FailFast: true}}).Draw(rt, "tasks")
	return g
}
