// Package oom says what of a container the memory limit has ended, by the counter of its
// control group, and ends the rest.
package oom

import (
	"fmt"
	"time"

	"gbatch/cgroups"
)

// EndRest ends what is left in a group in which the limit has killed. It is called for an event,
// which is a hint that may come before the kill, or without one.
func EndRest(g *cgroups.Group, timeout time.Duration) {
	for range 50 {
		st, err := g.Stats()
		if err != nil {
			return
		}
		if st.OOMKills > 0 {
			_ = g.Kill(timeout)
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Told says of an error of what was making a container whether the limit ended that: it does not
// know itself.
func Told(g *cgroups.Group, err error) error {
	if err == nil {
		return nil
	}
	if st, statErr := g.Stats(); statErr == nil && st.OOMKills > 0 {
		return fmt.Errorf("OOM-killed: %w", err)
	}
	return err
}
