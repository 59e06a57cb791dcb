package site

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
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
	f.Add([]byte("admins: &a\noperators: *a\nmetrics: &m {scrapers: [&u ann]}\nprojects:\n  - &p {name: a, members: [*u]}\n  - <<: *p\n    name: b\ndefaultProject: a\n"))
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
		again, err := parse("x", []byte(c.Text()))
		if err != nil {
			t.Fatalf("what it says of itself is not taken: %v\n%s", err, c.Text())
		}
		if diff := cmp.Diff(c.Text(), again.Text()); diff != "" {
			t.Errorf("read again it is another (-first +again):\n%s", diff)
		}
	})
}
