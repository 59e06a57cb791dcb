package oci

// What tests outside of the package have to reach.
var FillSeccomp = fillSeccomp

// MountOverlayOld mounts by the way for older kernels.
func MountOverlayOld(lower []string, upper, work, target string) error {
	return mountOverlayOld(overlayMount{Lower: lower, Upper: upper, Work: work, Target: target})
}
