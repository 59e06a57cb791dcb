package kubernetes

import (
	"fmt"
	"testing"
)

// TestConcurrencyPolicy: each policy of a CronJob keeps its meaning; none is Allow.
func TestConcurrencyPolicy(t *testing.T) {
	for policy, want := range map[string]struct{ overlap, replace bool }{
		"":                           {true, false},
		"concurrencyPolicy: Allow":   {true, false},
		"concurrencyPolicy: Forbid":  {false, false},
		"concurrencyPolicy: Replace": {false, true},
	} {
		list, err := Parse(fmt.Appendf(nil, `apiVersion: batch/v1
kind: CronJob
metadata: {name: a}
spec:
  schedule: "*/5 * * * *"
  %s
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}}}
`, policy))
		if err != nil {
			t.Errorf("%q: %v", policy, err)
			continue
		}
		if g := list.Spec.Gbatch; g.CronOverlap != want.overlap || g.Replace != want.replace || len(g.Cron) != 1 {
			t.Errorf("%q: overlap %t, replace %t", policy, g.CronOverlap, g.Replace)
		}
	}
}
