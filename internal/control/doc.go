// Package control is the controller as a value: jobs, nodes, allocations and
// the ledger, changed only by Apply and Schedule, which return what must be
// done about it as effects.
//
// It is pure: the time is an argument, nothing is read, written, logged or
// locked, and equal calls give equal bytes. One owner calls it (in production
// the loop of internal/ctld, in simulation internal/sim). What others read is
// the View, which never changes once taken.
//
// What it is about, jobs, nodes and records, is in internal/state.
package control
