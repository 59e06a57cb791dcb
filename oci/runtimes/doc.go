// Package runtimes runs containers by programs that speak the command line of
// the OCI runtimes: runc, and gVisor's runsc, which puts a kernel of its own
// between a container and the node. Each method of a Container executes its
// program once, by the caller's thread and in the caller's namespaces.
//
// It makes no root file system and no control group's name, waits for no
// container and keeps no log: its caller does. A bundle belongs to the caller.
package runtimes
