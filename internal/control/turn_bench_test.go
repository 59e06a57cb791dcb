package control

import (
	"fmt"
	"testing"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/sched"
)

// BenchmarkTurn is what turns cost beside so many nodes, with their views and when the next tick is due, as the loop has
// them: one with a node's word, and those in which a job is submitted, started and told of as ended, where ended jobs
// leave the table.
func BenchmarkTurn(b *testing.B) {
	for _, nodes := range []int{100, 1000, 5000} {
		b.Run(fmt.Sprintf("word/%d", nodes), func(b *testing.B) {
			c, now := many(b, nodes), sched.Time(1000)
			for i := 0; b.Loop(); i++ {
				now++
				Apply(c, now, NodeSync{Name: fmt.Sprintf("n%05d", i%nodes), Instance: "i", Hash: "h"})
				turn(c, now)
			}
		})
		b.Run(fmt.Sprintf("job/%d", nodes), func(b *testing.B) {
			c, now := many(b, nodes), sched.Time(1000)
			spec := &job.Spec{Name: "a", Request: job.Request{Resources: job.Resources{CPUs: 1, CPUMemoryGB: 1}}}
			for i := 0; b.Loop(); i++ {
				now++
				got, r, _ := Apply(c, now, Submit{UUID: [16]byte{byte(i), byte(i >> 8), byte(i >> 16), 1}, User: "ann", Project: "vision", Spec: spec, Document: []byte("{}")})
				if r != nil {
					b.Fatal(r)
				}
				turn(c, now)
				j := c.jobs.get(got.Number)
				now++
				Apply(c, now, NodeSync{Name: j.Attempt.Ranks[0].Alloc.Node, Instance: "i", Hash: "h", Ranks: []node.RankStatus{{
					ID: j.RankID(0), Phase: node.PhaseEnded, Exit: &node.Exit{StartedMS: int64(now), EndedMS: int64(now)}}}})
				turn(c, now)
			}
		})
	}
}

// many is a controller with so many nodes, which keeps few ended jobs.
func many(b *testing.B, nodes int) *Controller {
	cfg := testConfig()
	cfg.NoRecords, cfg.KeepCount = true, 100
	c, err := New(cfg, 1)
	if err != nil {
		b.Fatal(err)
	}
	for i := range nodes {
		name := fmt.Sprintf("n%05d", i)
		Apply(c, 1000, NodeSync{Name: name, Instance: "i", Hash: "h", Inventory: &node.Inventory{Hostname: name, Cluster: 1, Bridge: true, Gang: true, CPUs: 128, MemBytes: 1 << 40}})
	}
	return c
}

// turn is the rest of one: what time alone does, who starts, and the view.
func turn(c *Controller, now sched.Time) {
	if t := c.NextTick(now); t > 0 && t <= now {
		Apply(c, now, Tick{})
	}
	if c.Due() {
		c.Schedule(now)
	}
	c.View(now)
	c.NextTick(now)
}
