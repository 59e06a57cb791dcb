package rank

import "testing"

// TestKills: what ends while tasks run is theirs, and all else the script's, also right
// after the last of them.
func TestKills(t *testing.T) {
	now := uint64(0)
	k := &kills{read: func() uint64 { return now }}
	now = 1 // the script's
	first := k.begin()
	k.task()
	k.task()
	now = 3
	k.ended(true)
	if n, only := k.since(first); n != 2 || !only {
		t.Errorf("of one step: %d, %t", n, only)
	}
	second := k.begin()
	k.task()
	now = 4
	k.ended(false)
	if n, only := k.since(second); n != 1 || only {
		t.Errorf("of one of two steps: %d, %t", n, only)
	}
	k.end()
	now = 6
	k.ended(true) // of which the last was the script's
	k.end()
	now = 9 // the script's
	if n := k.ofSteps(); n != 4 {
		t.Errorf("of all steps: %d, want 4", n)
	}
	if first = k.begin(); first != 9 {
		t.Errorf("a step begins at %d", first)
	}
	k.end()
	if n := k.ofSteps(); n != 4 {
		t.Errorf("of all steps, after one without: %d, want 4", n)
	}
}

func TestKillsIn(t *testing.T) {
	for text, want := range map[string]uint64{
		"low 0\nmax 7\noom 3\noom_kill 2\noom_group_kill 1\n": 2,
		"oom_kill_disable 0\nunder_oom 0\noom_kill 4\n":       4,
		"": 0,
	} {
		if n := killsIn([]byte(text)); n != want {
			t.Errorf("%q: %d, want %d", text, n, want)
		}
	}
}
