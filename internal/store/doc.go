// Package store keeps the controller's records in a pebble database: the only
// user of pebble. A Commit is one batch, synced before it returns; what a
// Commit returned nil for survives kill -9 and power loss.
//
// It knows keys, the format version and disk space, and nothing of what the
// values mean. One process owns a store (pebble locks the directory).
package store
