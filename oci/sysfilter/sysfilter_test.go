//go:build seccomp && cgo

package sysfilter

import (
	"testing"

	"github.com/opencontainers/runc/libcontainer/seccomp"
	"github.com/opencontainers/runc/libcontainer/specconv"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// TestOnlyNative: the profile of the machine's own system calls keeps those, and
// names none that would match nothing.
func TestOnlyNative(t *testing.T) {
	if !seccomp.Enabled {
		t.Skip("SKIPPED, no filters without libseccomp")
	}
	count := func(compat bool) (names map[string]bool) {
		spec := &specs.Spec{Linux: &specs.Linux{}, Process: &specs.Process{Capabilities: &specs.LinuxCapabilities{}}}
		profile, err := Profile(spec, compat)
		if err == nil {
			_, err = specconv.SetupSeccomp(profile)
		}
		if err != nil {
			t.Fatal(err)
		}
		names = map[string]bool{}
		for _, rule := range profile.Syscalls {
			for _, n := range rule.Names {
				names[n] = true
			}
		}
		return names
	}
	all, native := count(true), count(false)
	for n := range all {
		if native[n] != isNative(n) {
			t.Errorf("%s: in the profile %t, a system call here %t", n, native[n], isNative(n))
		}
	}
	for _, n := range []string{"read", "openat2", "clone3", "execve"} {
		if !native[n] {
			t.Errorf("%s is not in the profile", n)
		}
	}
	t.Logf("%d of %d", len(native), len(all))
}
