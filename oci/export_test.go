package oci

import "os"

// What tests outside of the package have to reach.
var FillSeccomp = fillSeccomp

// MountOverlayOld mounts by the way for older kernels.
func MountOverlayOld(lower []string, upper, work, target string) error {
	return mountOverlayOld(overlayMount{Lower: lower, Upper: upper, Work: work, Target: target})
}

// MountAttached mounts a layer in the ids of a user namespace by the way for
// older kernels.
func MountAttached(layer string, user *os.File, upper, work, target string) error {
	m := overlayMount{Lower: []string{layer}, User: user, Upper: upper, Work: work, Target: target}
	trees, err := shiftLayers(m)
	if err != nil {
		return err
	}
	defer closeAll(trees)
	return mountAttached(m, trees)
}

// Idle is how many shims wait.
func (p *Pool) Idle() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle)
}
