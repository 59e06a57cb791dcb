package netns

import "testing"

// TestGeneration: the count stays while nothing changes, and any change to the
// firewall moves it, so that a table that somebody removed is missed.
func TestGeneration(t *testing.T) {
	needNetwork(t)
	n := openNetwork(t, Config{})
	first, err := generation()
	must(t, err)
	if again, err := generation(); err != nil || again != first {
		t.Errorf("generation %d, then %d without a change: %v", first, again, err)
	}
	for range 2 {
		if repaired, err := n.Ensure(); err != nil || repaired {
			t.Errorf("repaired %t: %v", repaired, err)
		}
	}
	must(t, n.uninstall())
	if now, err := generation(); err != nil || now == first {
		t.Errorf("generation %d stayed at a change: %v", now, err)
	}
	if repaired, err := n.Ensure(); err != nil || !repaired {
		t.Errorf("a table that was removed: repaired %t, %v", repaired, err)
	}
}
