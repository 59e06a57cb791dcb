package draft

import (
	"github.com/opencontainers/runtime-spec/specs-go"

	"gbatch/oci/sysfilter"
)

// SeccompMode chooses the container's system call filter.
type SeccompMode int

const (
	// SeccompNative is docker's default profile for this machine's own
	// instruction set. A 32-bit program is killed at its first system call.
	SeccompNative SeccompMode = iota
	// SeccompCompat admits the machine's 32-bit sets too, as docker does, and
	// makes each start slower: see docs/design/0004-container-start-cost.md.
	SeccompCompat
	// SeccompOff uses no filter. It is for sites that debug or trace jobs.
	SeccompOff
)

// String returns the mode's name, which is the same for ever.
func (m SeccompMode) String() string {
	switch m {
	case SeccompNative:
		return "native"
	case SeccompCompat:
		return "compat"
	case SeccompOff:
		return "off"
	}
	return "unknown"
}

// seccompAnnotation carries the mode to the shim. Without it, and with any
// value that is not known, a container gets the strictest filter.
const seccompAnnotation = "gbatch.seccomp"

// FillSeccomp gives the spec its filter. The whole profile is not written to
// the spec's file: reading it back would cost a tenth of the shim's work.
func FillSeccomp(spec *specs.Spec) error {
	mode := spec.Annotations[seccompAnnotation]
	if spec.Linux.Seccomp != nil || mode == SeccompOff.String() {
		return nil
	}
	profile, err := sysfilter.Profile(spec, mode == SeccompCompat.String())
	spec.Linux.Seccomp = profile
	return err
}
