package oci

import (
	"fmt"
	"runtime"

	"github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
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

// seccompProfile returns the filter for a container with these capabilities.
func seccompProfile(mode SeccompMode, caps []string) (*specs.LinuxSeccomp, error) {
	if mode == SeccompOff {
		return nil, nil
	}
	like := &specs.Spec{Process: &specs.Process{Capabilities: &specs.LinuxCapabilities{Bounding: caps}}}
	profile, err := seccomp.GetDefaultProfile(like)
	if err != nil {
		return nil, fmt.Errorf("build seccomp profile: %w", err)
	}
	if mode == SeccompNative {
		native, ok := nativeArch[runtime.GOARCH]
		if !ok {
			return nil, fmt.Errorf("build seccomp profile: no name for architecture %s; use the compatible mode", runtime.GOARCH)
		}
		profile.Architectures = []specs.Arch{native}
	}
	return profile, nil
}

var nativeArch = map[string]specs.Arch{
	"amd64": specs.ArchX86_64, "arm64": specs.ArchAARCH64, "ppc64le": specs.ArchPPC64LE, "riscv64": specs.ArchRISCV64,
}
