// Package events streams to clients what changes, from the loop's feed. A client
// that does not read is dropped, and nobody waits for it.
package events
