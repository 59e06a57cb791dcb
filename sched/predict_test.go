package sched

import "testing"

func TestPredictsFromTheLastTwoOfTheNearestKind(t *testing.T) {
	var p Predictor
	job := func(user, name string, gpus int64) Job {
		return Job{User: user, Name: name, Shape: &Shape{MilliGPU: gpus * 1000}, Limit: 100 * Minute}
	}
	for _, o := range []struct {
		job Job
		ran Time
	}{
		{job("ann", "train", 4), 90 * Minute},
		{job("ann", "train", 4), 16 * Minute},
		{job("ann", "train", 4), 16 * Minute},
		{job("ann", "eval", 4), 4 * Minute},
		{job("ann", "eval", 1), 64 * Minute},
	} {
		p.Observe(o.job, o.ran)
	}
	for _, tc := range []struct {
		name string
		job  Job
		want Time
	}{
		{"same-name", job("ann", "train", 4), 40 * Minute}, // 16 and 16: sqrt(16*100)
		{"same-shape", job("ann", "new", 4), 1_800_000},    // 4 and 16: sqrt(10*100) = 31.6 minutes
		{"same-user", job("ann", "new", 2), 3_400_000},     // 64 and 4: sqrt(34*100) = 58.3 minutes
		{"stranger", job("bob", "train", 4), 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := p.Predict(tc.job); got != tc.want {
				t.Errorf("predicted %d, want %d", got, tc.want)
			}
		})
	}
}
