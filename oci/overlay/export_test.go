package overlay

// What tests outside of the package have to reach.

// Unmark lets directories be mounted once more.
func Unmark(m Stack) error { return unmark(m) }

// MountOld mounts by the way for older kernels.
func MountOld(m Stack) error { return mountOld(m) }

// MountAttached mounts layers in the ids of a user namespace by the way for
// older kernels.
func MountAttached(m Stack) error {
	trees, err := shiftLayers(m)
	if err != nil {
		return err
	}
	defer closeTrees(trees)
	return mountAttached(m, trees)
}
