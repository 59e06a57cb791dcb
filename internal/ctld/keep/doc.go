// Package keep has the copies of jobs' logs that the controller keeps, in files
// of its own: the store and the loop know nothing of them. Nodes send what their
// ranks write, each byte at its place; whose log it is, and which node may write
// it, callers have found out.
//
// A log is a directory of package oci/logs, below that of its user. Everything
// here is bounded: one log, one user's, all together, their age, and what they
// leave free on the disk.
package keep
