// Package meter counts what the controller does, as it happens: turns, rounds,
// jobs that start and end, requests. What there is at one moment, package counts
// tells. Its counters may be used from all goroutines.
package meter
