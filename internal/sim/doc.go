// Package sim replays workloads through the production controller with a
// virtual clock: logs of real machines, random workloads with faults, and the
// history of a controller of our own.
//
// It is pure: readers take an io.Reader, plots are strings, randomness comes
// from a seed, and the only clock is one that the caller may lend to measure
// how long decisions take. It decides nothing: what starts when is the word of
// internal/control, and every start is checked against what the simulated
// nodes have. Its values belong to the caller.
package sim
