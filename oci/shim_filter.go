package oci

import (
	"github.com/opencontainers/runtime-spec/specs-go"

	"gbatch/oci/sysfilter"
)

// confineCalls has this thread enter what its programs' filters of system calls have in common, and
// leaves the rest to libcontainer: to make the whole filter in each container's first process, and to
// describe it there, was a sixth of what that does. As confine.Thread does, it counts on this
// thread to begin whatever is in the container. Hooks begin here, too, and are the node's: where
// there are any, nothing is taken from them.
func confineCalls(s *shim) error {
	if s.cfg.Runtime != nil {
		return nil // it has the whole
	}
	var first sysfilter.Before
	var within []*specs.LinuxSeccomp
	for i, p := range s.parts {
		before, rest, ok := sysfilter.Split(p.Spec.Linux.Seccomp)
		if !ok || p.Spec.Hooks != nil || i > 0 && !before.Same(first) {
			return nil // libcontainer makes the whole of each
		}
		first, within = before, append(within, rest)
	}
	for i, p := range s.parts {
		p.Spec.Linux.Seccomp = within[i]
	}
	return first.Enter()
}
