// Package accounting keeps what was used by whom, and what share of it each was
// meant to have: a ledger of GPU, CPU and memory time per project and user with
// half-life decay, the share tree, and fair-share factors from both.
//
// It is pure and counts in integers (amount x milliseconds, fixed-point
// factors), so that replaying the same calls gives the same value on every
// machine. It decides nothing; the scheduler reads Shares. A Ledger has one
// owner; a Shares never changes once made and may be read by anyone.
package accounting
