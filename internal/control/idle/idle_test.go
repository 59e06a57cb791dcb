package idle

import (
	"testing"

	"gbatch/internal/state"
	"gbatch/sched"
)

// TestWindow: nothing is concluded before every part of the window was seen, for
// every GPU, and the busiest one speaks.
func TestWindow(t *testing.T) {
	const part = 10 * sched.Second
	watched := Jobs{}
	j := &state.Job{Number: 1, Request: &state.Request{IdleWindow: parts * part}, Attempt: &state.Attempt{Attempt: 1, Ranks: []state.Rank{
		{Alloc: sched.Allocation{Node: "n1", GPUs: []sched.GPUShare{{UUID: "a"}, {UUID: "b"}}}},
	}}}
	say := func(at sched.Time, from string, a, b int) (int64, bool) {
		return watched.Add(at, j, from, []Load{{"a", a}, {"b", b}})
	}
	at := sched.Time(0)
	for ; at < (parts-1)*part; at += part {
		if _, ok := say(at, "n1", 0, 0); ok {
			t.Fatalf("concluded after %d ms", at)
		}
	}
	if busiest, ok := say(at, "n1", 0, 600); !ok || busiest != 100 {
		t.Errorf("busiest %d, known %t; want 100, true", busiest, ok)
	}
	if _, ok := say(at+2*part, "n1", 0, 0); ok {
		t.Error("concluded though a part was not seen")
	}
	if _, ok := say(at+3*part, "n2", 0, 0); ok {
		t.Error("another node's word counted")
	}
	j.Attempt = &state.Attempt{Attempt: 2, Ranks: j.Attempt.Ranks}
	if _, ok := say(at+3*part, "n1", 0, 0); ok {
		t.Error("what an earlier attempt did counted")
	}
}
