package oci

// What tests outside of the package have to reach.
var (
	FillSeccomp = fillSeccomp
	ResolveUser = resolveUser
)

type OverlayMount = overlayMount

// MountOverlayOld mounts by the way for older kernels.
func MountOverlayOld(m OverlayMount) error { return mountOverlayOld(m) }

// MountAttached mounts layers in the ids of a user namespace by the way for
// older kernels.
func MountAttached(m OverlayMount) error {
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
