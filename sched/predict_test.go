package sched

import "testing"

func TestPredictsFromTheNearestKind(t *testing.T) {
	var p Predictor
	job := func(user, name string, gpus int64, limit Time) Job {
		return Job{User: user, Name: name, Shape: &Shape{MilliGPU: gpus * 1000}, Limit: limit}
	}
	run := func(times int, j Job, ran Time) {
		for range times {
			p.Observe(j, ran)
		}
	}
	run(predictRuns, job("ann", "train", 4, 2*Hour), 90*Minute)
	run(predictRuns, job("ann", "train", 4, 2*Hour), 64*Minute)
	run(predictRuns, job("ann", "eval", 4, 2*Hour), 4*Minute)
	run(predictRuns, job("ann", "eval", 1, Hour), 2*Minute)
	run(1, job("bob", "a", 1, Hour), 16*Second)
	run(1, job("bob", "a", 1, Hour), 64*Second)
	for _, tc := range []struct {
		name string
		job  Job
		want Time // give or take an eighth
	}{
		{"same-name", job("ann", "train", 4, 2*Hour), 64 * Minute},
		{"same-shape-and-limit", job("ann", "new", 4, 2*Hour), 4 * Minute},
		{"same-limit", job("ann", "new", 2, 2*Hour), 4 * Minute},
		{"any", job("ann", "new", 2, 3*Hour), 2 * Minute},
		{"never-above-limit", job("ann", "new", 2, Minute), Minute},
		{"geometric", job("bob", "a", 1, Hour), 32 * Second},
		{"stranger", job("eve", "train", 4, 2*Hour), 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := p.Predict(tc.job); got < tc.want-tc.want/8 || got > tc.want+tc.want/8 {
				t.Errorf("predicted %d s, want about %d s", got/Second, tc.want/Second)
			}
		})
	}
}

func TestLogarithmAndBack(t *testing.T) {
	for _, x := range []uint64{1, 2, 3, 7, 8, 100, 1000, 12_345, 1 << 30, 1<<40 + 12345, 1 << 62} {
		back := exp2(log2(x))
		if back > x || x-back > x/40+1 {
			t.Errorf("%d comes back as %d", x, back)
		}
	}
}

func TestPredictorForgets(t *testing.T) {
	var p Predictor
	for i := range maxPredictKeys {
		p.Observe(Job{User: "u", Limit: Time(i + 1)}, Minute)
	}
	if len(p.recent) != maxPredictKeys || len(p.order) != maxPredictKeys {
		t.Errorf("remembers %d kinds in %d, want %d", len(p.recent), len(p.order), maxPredictKeys)
	}
}
