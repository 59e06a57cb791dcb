// Package alone has a command begin with one thread of Go's at a time. It imports nothing
// that has to be initialised, so that it is initialised before what a command is made of: what
// a second processor has begun to hold by main, a tenth of a short command's time, is never made.
// A command that is for several at a time says so in main.
package alone

import "runtime"

func init() { runtime.GOMAXPROCS(1) }
