// Package wire is what programs with a PMIx library and their server say to each
// other over TCP: how a connection begins, frames, and the values in them, in the
// formats that releases since 2.1 know. It only turns bytes into values and back,
// and takes bytes from anybody: what is no message is an error.
package wire
