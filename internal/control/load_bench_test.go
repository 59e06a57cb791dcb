package control

import (
	"fmt"
	"testing"
	"time"

	"gbatch/internal/control/standby"
	"gbatch/internal/job"
	"gbatch/internal/state"
)

// BenchmarkLoad takes up 100,000 queued jobs of 100 kinds, as a start does and a
// controller that begins to lead.
func BenchmarkLoad(b *testing.B) {
	cfg := testConfig()
	cfg.MaxQueued = 1_000_000
	c, err := New(cfg, 1)
	if err != nil {
		b.Fatal(err)
	}
	var records []state.Record
	for i := range 100_000 {
		spec := &job.Spec{Name: fmt.Sprint("job", i)}
		spec.Request.Resources = job.Resources{CPUs: 1 + i%100, GPUs: 1, CPUMemoryGB: 1}
		_, r, eff := Apply(c, 1000, Submit{UUID: state.UUID{byte(i), byte(i >> 8), byte(i >> 16), 1}, User: fmt.Sprint("user", i%10), Project: "vision", Spec: spec, Document: []byte("{}")})
		if r != nil {
			b.Fatal(r)
		}
		for _, r := range eff.Records {
			if r.Kind == state.KindJob {
				records = append(records, r)
			}
		}
	}
	var load, loaded, check time.Duration
	for b.Loop() {
		began := time.Now()
		all := standby.New() // who follows has it by then
		for _, r := range records {
			if err := all.Put(r.Job, r.Value); err != nil {
				b.Fatal(err)
			}
		}
		then := time.Now()
		c, err := Of(cfg, 2, all)
		if err != nil {
			b.Fatal(err)
		}
		if err := c.Loaded(2000); err != nil {
			b.Fatal(err)
		}
		after := time.Now()
		if err := c.Check(); err != nil {
			b.Fatal(err)
		}
		load, loaded, check = load+then.Sub(began), loaded+after.Sub(then), check+time.Since(after)
	}
	for name, d := range map[string]time.Duration{"load": load, "loaded": loaded, "check": check} {
		b.ReportMetric(float64(d.Microseconds())/1000/float64(b.N), "ms-"+name)
	}
}
