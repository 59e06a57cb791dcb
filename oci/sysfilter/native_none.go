//go:build !seccomp || !cgo

package sysfilter

import "github.com/opencontainers/runtime-spec/specs-go"

// isNative cannot tell without libseccomp, and need not: there is no filter.
func isNative(string) bool { return true }

// Before is what a thread is confined to that begins containers: nothing.
type Before struct{}

// Split does not know what to do with any profile.
func Split(*specs.LinuxSeccomp) (before Before, within *specs.LinuxSeccomp, ok bool) {
	return before, nil, false
}

// Same is true of all.
func (Before) Same(Before) bool { return true }

// Enter does nothing.
func (Before) Enter() error { return nil }
