//go:build race

package oci

// A program with the race detector sleeps for a second when it ends, so that
// other threads can report. Nothing of a shim goes on that long, and whoever
// waits for it, in every test, need not.
func init() { shimVars = append(shimVars, "GORACE=atexit_sleep_ms=0") }
