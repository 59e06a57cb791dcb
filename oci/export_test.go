package oci

// What tests outside of the package have to reach.
var FillSeccomp = fillSeccomp

// Idle is how many shims wait.
func (p *Pool) Idle() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle)
}
