// Package oci runs one container for one rank of a job and keeps it through
// restarts of the program that asked for it.
//
// Package draft makes the OCI runtime spec. [Prepare] writes it into a directory, [Start] begins a shim there: one
// small process per container, this same program executed again or the one
// that it carries for that (program.go). The shim mounts the root file system,
// calls libcontainer, pumps the log, waits, and leaves the result in a file. A
// [Pool] lets one serve container after container. The caller may die at any
// time; [Adopt] finds out later what became of a directory, and [Cleanup]
// removes all that is left of it.
//
// A program that imports this package hands its process over to it, before
// main runs, when it was started as a shim or as a container's first process
// (see dispatch.go). The package does not fetch images, choose resources, set
// up networks or renew leases: its callers do, and they own the directories.
//
// Containers use seccomp: build with the tag "seccomp", or each start fails
// with an error that says so.
package oci
