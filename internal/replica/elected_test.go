package replica

import (
	"context"
	"testing"
)

// TestElected: who waits for another leader hears of it when there is one.
func TestElected(t *testing.T) {
	t.Parallel()
	all, _ := patientTrio(t)
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if got := all[1].r.Elected(done, "a"); got != "a" {
		t.Errorf("while a leads, another one than a: %q", got)
	}
	if got := all[1].r.Elected(t.Context(), "c"); got != "a" {
		t.Errorf("another one than c: %q", got)
	}
	heard := make(chan string, 2)
	for _, m := range all[1:] {
		go func() { heard <- m.r.Elected(t.Context(), "a") }() // ends when another one leads, or with the test
	}
	all[0].stop()
	m, _ := leader(t, all[1:]...)
	for range 2 {
		if got := <-heard; got != m.name {
			t.Errorf("%s leads, and %q was heard of", m.name, got)
		}
	}
}
