// Package samples keeps what nodes said last of their GPUs, their ranks and their
// clocks. It is in memory only: a node says it again with each sync.
package samples
