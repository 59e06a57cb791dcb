package e2e

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// guests are how many tasks run one after the other in a container here, its first one included.
const guests = 3

// TestGuestsKilledAtCalls is TestKilledAtCalls for tasks that run one after the other in a container: each
// ends once, as it should, but for one that a killed shim had.
func TestGuestsKilledAtCalls(t *testing.T) {
	points := number(t, "GBATCH_CRASH_POINTS", 0)
	if points == 0 {
		t.Skip("NOT TESTED: kills at each system call are done by make crash")
	}
	for _, program := range []string{"gctld", "gnoded", "shim"} {
		t.Run(program, func(t *testing.T) {
			k := newCalls(t, program)
			n := 0
			for _, key := range []string{"first", "count"} {
				trap := k.tracer.Set(program, 0)
				if lost := k.tasks(key); lost != 0 {
					t.Fatalf("without a kill %d tasks did not end as they should", lost)
				}
				n = len(trap.Calls())
			}
			t.Logf("%s makes %d calls for %d tasks", program, n, guests)
			first := rand.New(rand.NewPCG(uint64(number(t, "GBATCH_E2E_SEED", 1)), 1)).Float64()
			for i := range min(points, n) {
				at := 1 + int((float64(i)+first)*float64(n)/float64(min(points, n)))
				trap := k.tracer.Set(program, at)
				lost := k.tasks(fmt.Sprint(program, at))
				select {
				case <-trap.Hit():
					k.hits++
				default:
					k.tracer.Set("", 0)
					continue
				}
				made := trap.Calls()
				t.Logf("killed at call %d of %s, %s: %d tasks were lost", at, program, made[len(made)-1], lost)
				if lost > 0 && program != "shim" || lost > 1 {
					t.Errorf("killed at call %d of %s, %s: %d tasks were lost", at, program, made[len(made)-1], lost)
				}
			}
			t.Logf("%d of %d were killed at their call", k.hits, min(points, n))
		})
	}
}

// tasks runs an array in one container, if nothing is killed, and says how many of its tasks did not come to their end.
// None runs twice, and nothing is left.
func (k *calls) tasks(key string) (lost int) {
	k.s.t.Helper()
	id := k.submit(key, doc{name: key, cpus: 8, storage: []any{"/project"}, gbatch: map[string]any{"tasks": map[string]any{"indexes": fmt.Sprint("1-", guests), "reuse": true}},
		command: sh("echo begin >> /project/" + key + ".$GBATCH_TASK; echo end >> /project/" + key + ".$GBATCH_TASK; exit 7")})
	for i := range guests {
		name := fmt.Sprintf("%s_%d", id, i+1)
		end := k.end(name)
		var ran []string
		if file := filepath.Join(k.s.project(), fmt.Sprint(key, ".", i+1)); exists(file) {
			ran = lines(k.s.t, file)
		}
		switch {
		case end == asked && cmp.Equal([]string{"begin", "end"}, ran):
		case slices.Equal(ran, []string{"begin", "end"}[:min(len(ran), 2)]):
			lost++
		default:
			k.s.t.Errorf("%s: task %s ended %v, its program wrote %q\n%s", key, name, end, ran, describe(k.s.job(name)))
		}
	}
	if !poll(patience, func() bool { k.again(); return len(k.left()) == 0 }) {
		k.s.t.Errorf("%s: of its tasks is left:\n%v", key, k.left())
	}
	return lost
}
