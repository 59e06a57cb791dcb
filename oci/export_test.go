package oci

import (
	"testing"
	"time"
)

// Idle is how many shims wait.
func (p *Pool) Idle() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle)
}

// SetCallTimeout has a test wait for less than 15 seconds.
func SetCallTimeout(t *testing.T, to time.Duration) {
	was := callTimeout
	callTimeout = to
	t.Cleanup(func() { callTimeout = was })
}
