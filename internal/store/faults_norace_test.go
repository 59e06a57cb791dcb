//go:build !race

package store

// faultRuns is how often each kind of fault strikes in a run of the tests.
const faultRuns = 40
