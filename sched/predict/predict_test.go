package predict

import (
	"testing"

	"gbatch/sched/spec"
)

func TestPredictsFromTheNearestKind(t *testing.T) {
	var p Predictor
	job := func(user, name string, gpus int64, limit spec.Time) spec.Job {
		return spec.Job{User: user, Name: name, Shape: &spec.Shape{MilliGPU: gpus * 1000}, Limit: limit}
	}
	run := func(times int, j spec.Job, ran spec.Time) {
		for range times {
			p.Observe(j, ran)
		}
	}
	run(maxRuns, job("ann", "train", 4, 2*spec.Hour), 90*spec.Minute)
	run(maxRuns, job("ann", "train", 4, 2*spec.Hour), 64*spec.Minute)
	run(maxRuns, job("ann", "eval", 4, 2*spec.Hour), 4*spec.Minute)
	run(maxRuns, job("ann", "eval", 1, spec.Hour), 2*spec.Minute)
	run(1, job("bob", "a", 1, spec.Hour), 16*spec.Second)
	run(1, job("bob", "a", 1, spec.Hour), 64*spec.Second)
	for _, tc := range []struct {
		name string
		job  spec.Job
		want spec.Time // give or take an eighth
	}{
		{"same-name", job("ann", "train", 4, 2*spec.Hour), 64 * spec.Minute},
		{"same-shape-and-limit", job("ann", "new", 4, 2*spec.Hour), 4 * spec.Minute},
		{"same-limit", job("ann", "new", 2, 2*spec.Hour), 4 * spec.Minute},
		{"any", job("ann", "new", 2, 3*spec.Hour), 2 * spec.Minute},
		{"never-above-limit", job("ann", "new", 2, spec.Minute), spec.Minute},
		{"geometric", job("bob", "a", 1, spec.Hour), 32 * spec.Second},
		{"stranger", job("eve", "train", 4, 2*spec.Hour), 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := p.Predict(tc.job); got < tc.want-tc.want/8 || got > tc.want+tc.want/8 {
				t.Errorf("predicted %d s, want about %d s", got/spec.Second, tc.want/spec.Second)
			}
		})
	}
}

func TestPredictorForgets(t *testing.T) {
	var p Predictor
	for i := range maxKeys {
		p.Observe(spec.Job{User: "u", Limit: spec.Time(i + 1)}, spec.Minute)
	}
	if len(p.recent) != maxKeys || len(p.order) != maxKeys {
		t.Errorf("remembers %d kinds in %d, want %d", len(p.recent), len(p.order), maxKeys)
	}
}
