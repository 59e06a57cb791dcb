//go:build race

package store

// faultRuns is fewer under the race detector, which makes each run six times as
// long: its subject is how goroutines meet, and not where the fault strikes.
const faultRuns = 8
