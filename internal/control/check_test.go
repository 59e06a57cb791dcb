package control

import (
	"strings"
	"testing"

	"gbatch/accounting"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
)

// TestCheckFindsWhatIsWrong proves that each part's check sees what its invariants
// exclude.
func TestCheckFindsWhatIsWrong(t *testing.T) {
	for name, tc := range map[string]struct {
		harm func(*Controller)
		want string
	}{
		"a promise to nobody": {func(c *Controller) { c.queue.promised[99] = 1 }, "job 99 was promised a start and does not wait for it"},
		"not in the queue":    {func(c *Controller) { c.queue.sched.Dequeue(2) }, "job 2 is QUEUED; to the scheduler it waits false and runs false"},
		"holds nothing":       {func(c *Controller) { c.queue.sched.End(1) }, "job 1 is RUNNING; to the scheduler it waits false and runs false"},
		"unknown window":      {func(c *Controller) { c.queue.windows = []state.Window{{Window: sched.Window{Name: "w"}}} }, "reservation w is unknown to the scheduler"},
		"charged for nothing": {func(c *Controller) { must(c.ledger.Begin(accounting.Charge{Project: "p", User: "u", MilliCPU: 1})) }, `user "u" in project "p" is charged`},
		"not charged":         {func(c *Controller) { c.ledger.Charge(c.jobs.get(1), c.ledger.End) }, `user "ann" in project "vision" is charged`},
		"counted wrong":       {func(c *Controller) { c.jobs.waiting++ }, "counted 1 queued jobs, kept count is 2"},
		"counted by state":    {func(c *Controller) { c.jobs.get(1).State = job.Starting }, "counted 2 jobs, by state map[QUEUED:1 STARTING:1], kept counts are 2 and map[QUEUED:1 RUNNING:1]"},
		"owned wrong":         {func(c *Controller) { c.jobs.owned.Put(nil, c.jobs.get(2)) }, "user ann is said to have {Jobs:3 "},
		"number given":        {func(c *Controller) { c.jobs.next = 2 }, "job 2: the next one is to be 2"},
		"job on no node":      {func(c *Controller) { c.nodes.leave("n1", &state.Job{Number: 1}) }, "job 1: node n1 and the job disagree"},
		"node with no job":    {func(c *Controller) { c.nodes.arrive("n1", 2) }, "node n1 has job 2, which is not there"},
		"watched in vain":     {func(c *Controller) { c.idle[2] = nil }, "the GPUs of job 2 are watched, which does not run"},
		"templates":           {func(c *Controller) { c.jobs.get(2).Cron = &state.Cron{} }, "job 2 is a template that makes no jobs"},
		"granted twice": {func(c *Controller) {
			c.jobs.get(1).Attempt.Ranks[0].Alloc.GPUs = []sched.GPUShare{{UUID: "a", Milli: 600}, {UUID: "a", Milli: 600}}
		}, "GPU a of n1 is granted 1200/1000 times"},
		"ended and active": {func(c *Controller) { c.jobs.get(1).Attempt.End = 1 }, "it is RUNNING but its attempt says otherwise"},
		"ending and waits": {func(c *Controller) { c.jobs.get(2).Ending = &state.Ending{} }, "it is QUEUED and being ended"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.node("n1", 2, gpus{}, "i1")
			for _, name := range []string{"a", "b"} {
				spec := &job.Spec{Name: name}
				spec.Request.Resources = job.Resources{CPUs: 2, CPUMemoryGB: 1}
				w.apply(Submit{UUID: [16]byte{name[0]}, User: "ann", Project: "vision", Spec: spec, Document: []byte("{}")})
			}
			w.schedule()
			w.status("", node.RankStatus{ID: job.RankID{Job: 1}, Phase: node.PhaseRunning})
			tc.harm(w.c)
			if err := w.c.Check(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %s", err, tc.want)
			}
		})
	}
}
