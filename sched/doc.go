// Package sched decides which waiting jobs start, where, and which of the
// others get a place in the plan; and it explains those decisions.
//
// It is pure: time, policy and fair shares are inputs, ties are broken by job
// number and node name, and nothing but integers takes part in a decision, so
// equal input gives an equal plan on every machine. It reads no job file, no
// clock and no history; it starts and stops nothing itself.
//
// What it is told is in package spec, the nodes and what is held on them in
// package nodes, what free GPUs are worth to the jobs to come in package mix; here are the queue (class.go, jobkind.go, tally.go), the round
// that decides (round.go, decide.go), the ways to choose a place (placement.go
// and a file for each) and the reasons. All that a round notes down is its own.
//
// State is the scheduler's incremental picture of nodes, waiting and running
// jobs. It has one owner, who tells it every change and calls Decide; no
// method may run at the same time as another. Values that are passed in are
// copied or must not be changed afterwards; values that are returned belong to
// the caller.
package sched
