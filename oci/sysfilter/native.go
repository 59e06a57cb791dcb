//go:build seccomp && cgo

package sysfilter

import (
	"sync"

	libseccomp "github.com/seccomp/libseccomp-golang"
)

// nativeCalls are the names that were looked up, and whether they are native: a
// shim that serves several containers looks once.
var nativeCalls sync.Map

// isNative says whether this machine's own instruction set has a system call.
func isNative(name string) bool {
	known, ok := nativeCalls.Load(name)
	if !ok {
		number, err := libseccomp.GetSyscallFromName(name)
		known = err == nil && number >= 0 // below are those that only others have
		nativeCalls.Store(name, known)
	}
	return known.(bool)
}
