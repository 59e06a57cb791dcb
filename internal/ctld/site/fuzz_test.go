package site

import (
	"os"
	"testing"
)

// FuzzConfig reads anything as a controller's configuration: what is taken makes
// rules, and is what its reader says it is.
func FuzzConfig(f *testing.F) {
	text, err := os.ReadFile("../../../deploy/gctld.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte("projects:\n  - {name: lab, gid: 7, members: [ann, {group: lab}], parent: vision, userShares: {ann: 3}, limits: {gpus: 1.5}, capabilities: [NET_RAW]}\n  - {name: vision, budget: 9, budgetPeriod: month}\n"))
	f.Add([]byte("policy: {weights: {age: 1, small: 3}, maxWaitBoost: 12h, boostBacklog: 60, defaultQos: low, qos: {low: {priority: 3, preempts: [low]}}}\n"))
	f.Add([]byte("limits: {perUser: {jobs: -1, storedMiBPerDay: 9223372036854775807}, users: {ann: {tasks: 1}}}\nadmins: [ann]\nmunge: {}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := parse("x", text)
		if err != nil {
			return
		}
		if _, err := c.Rules(); err != nil {
			t.Errorf("it is taken, and makes no rules: %v", err)
		}
		if err := c.Validate(); err != nil {
			t.Errorf("it is taken, and not valid: %v", err)
		}
	})
}
