// Package garbage has a daemon collect garbage less often where the machine has memory for that.
package garbage

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// To collect costs as much as there is in memory, so that a daemon with much of that is at it for a fifth of its time by Go's own rule,
// which is when as much has come as there was. It may be up to mostPercent of it, but all together no more
// than one part in machineParts of what memory there is, or Go's own rule counts.
const (
	leastPercent = 100
	mostPercent  = 300
	machineParts = 8
)

// Sparingly has this process collect so from now on. False: GOGC or GOMEMLIMIT are set, and count instead.
func Sparingly() bool {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return false
	}
	room := memory() / machineParts
	set := leastPercent
	follow(func() {
		if p := percent(live(), room); p != set {
			set = p
			debug.SetGCPercent(p)
		}
	})
	return true
}

// percent is for a collection after which so many bytes are left.
func percent(live, room uint64) int {
	if live == 0 {
		return leastPercent
	}
	beside := int64(room) - int64(live)
	return int(min(max(beside*100/int64(live), leastPercent), mostPercent))
}

// follow has f called after each collection from now on: one frees what the one before has left here.
func follow(f func()) {
	runtime.AddCleanup(new([64]byte), func(f func()) {
		f()
		follow(f)
	}, f)
}

// live is how many bytes the last collection has left.
func live() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
