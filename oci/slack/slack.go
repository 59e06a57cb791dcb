// Package slack lets a shim and a container's set-up wake up less. The Go runtime
// has a thread that looks every 20 microseconds whether another one hangs in a system
// call, which is a third of all context switches of a start. A thread sleeps for longer
// by its timer slack, which it has from who began it; the runtime's is begun before any
// of Go's code, so this is done in C, ahead of it. What the user runs has the usual slack.
package slack

/*
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#define FOR_SHIM 2000000UL    // also how much later the shim's timers may be
#define FOR_SETUP 10000000UL  // one goroutine, no timers

// The two variables are those by which oci/dispatch.go knows what a process is.
//
// Of the processes on the way to a container's first one, only the last, which has a
// number of its own namespace, goes on to Go. The others hand their slack on to it
// for good, as what a thread is reset to, so they have to keep the usual one.
__attribute__((constructor)) static void set_slack(void) {
	if (getenv("_LIBCONTAINER_INITPIPE")) {
		if (getpid() == 1) prctl(PR_SET_TIMERSLACK, FOR_SETUP);
	} else if (getenv("_GBATCH_SHIM"))
		prctl(PR_SET_TIMERSLACK, FOR_SHIM);
}
*/
import "C"

import "golang.org/x/sys/unix"

// usual is the kernel's, in nanoseconds.
const usual = 50_000

// Usual gives the calling thread, and what it begins, the usual slack.
func Usual() error { return unix.Prctl(unix.PR_SET_TIMERSLACK, usual, 0, 0, 0) }
