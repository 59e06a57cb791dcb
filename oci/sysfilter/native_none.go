//go:build !seccomp || !cgo

package sysfilter

// isNative cannot tell without libseccomp, and need not: there is no filter.
func isNative(string) bool { return true }
