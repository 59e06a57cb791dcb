package oci

// What tests outside of the package have to reach.
var FillSeccomp = fillSeccomp

// MountOverlayOld mounts by the way for older kernels.
func MountOverlayOld(lower []string, upper, work, target string) error {
	return mountOverlayOld(overlayMount{Lower: lower, Upper: upper, Work: work, Target: target})
}

// Idle is how many shims wait.
func (p *Pool) Idle() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle)
}
