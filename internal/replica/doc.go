// Package replica keeps the stores of several controllers alike, so that the loss of a
// minority of them loses nothing. The batch of records that a turn of the leading
// controller commits is an entry of a common log (hashicorp/raft, raft-wal); when a
// majority has it on disk, each member applies it to its own store. Nobody but the leader
// decides, so members of different versions get along.
//
// It knows batches and members, and nothing of what records mean.
package replica
