package job

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPortions: programs that run at once have no GPU in common where the job says how many
// each has, and else all of them or none.
func TestPortions(t *testing.T) {
	two := 2
	type p = Portion
	for name, tc := range map[string]struct {
		g      Gbatch
		own    Portion
		others []Portion
	}{
		"one-program": {Gbatch{}, p{0, 8}, []p{}},
		"all-or-none": {Gbatch{Beside: []Before{{GPUs: true}, {}}}, p{0, 8}, []p{{0, 8}, {0, 0}}},
		"the-rest":    {Gbatch{Beside: []Before{{OwnGPUs: 1}, {OwnGPUs: 2}, {}}}, p{0, 5}, []p{{5, 6}, {6, 8}, {8, 8}}},
		"sidecars": {Gbatch{OwnGPUs: &two, Before: []Before{{OwnGPUs: 8}, {OwnGPUs: 1, Sidecar: true}, {OwnGPUs: 7}, {}, {OwnGPUs: 2, Sidecar: true}}, Beside: []Before{{OwnGPUs: 3}}},
			p{0, 2}, []p{{0, 8}, {7, 8}, {0, 7}, {0, 0}, {5, 7}, {2, 5}}},
		"none-of-its-own": {Gbatch{OwnGPUs: new(int), Beside: []Before{{OwnGPUs: 8}}}, p{0, 0}, []p{{0, 8}}},
	} {
		t.Run(name, func(t *testing.T) {
			own, others := (&Spec{Gbatch: &tc.g}).Portions(8)
			if diff := cmp.Diff(append([]p{tc.own}, tc.others...), append([]p{own}, others...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
