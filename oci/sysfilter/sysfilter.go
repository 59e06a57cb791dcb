// Package sysfilter makes containers' profiles of the system calls that they may
// use. libseccomp makes filters of them, in each container's first process.
package sysfilter

import (
	"fmt"
	"runtime"
	"slices"

	"github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// Profile is docker's default profile for a container: for this machine's own
// instruction set, or, if compat is set, for its 32-bit ones too.
func Profile(spec *specs.Spec, compat bool) (*specs.LinuxSeccomp, error) {
	profile, err := seccomp.GetDefaultProfile(spec)
	if err != nil {
		return nil, fmt.Errorf("build seccomp profile: %w", err)
	}
	if compat {
		return profile, nil
	}
	native, ok := nativeArch[runtime.GOARCH]
	if !ok {
		return nil, fmt.Errorf("build seccomp profile: no name for architecture %s; use the compatible mode", runtime.GOARCH)
	}
	profile.Architectures = []specs.Arch{native}
	if native != specs.ArchPPC64LE { // some of its calls go by another one's number
		onlyNative(profile)
	}
	return profile, nil
}

// onlyNative takes out of a profile the system calls that this machine's own
// instruction set does not have, two in ten: rules for them match nothing, and
// are written, read and added for each container.
func onlyNative(profile *specs.LinuxSeccomp) {
	for i := range profile.Syscalls {
		rule := &profile.Syscalls[i]
		rule.Names = slices.DeleteFunc(slices.Clone(rule.Names), func(name string) bool { return !isNative(name) })
	}
	profile.Syscalls = slices.DeleteFunc(profile.Syscalls, func(rule specs.LinuxSyscall) bool { return len(rule.Names) == 0 })
}

var nativeArch = map[string]specs.Arch{
	"amd64": specs.ArchX86_64, "arm64": specs.ArchAARCH64, "ppc64le": specs.ArchPPC64LE, "riscv64": specs.ArchRISCV64,
}
