// Package keep sends what ranks write to the controller, which keeps it beyond
// the node's life: in pieces that are seconds old, each byte at its place. A
// log on the node is never held up by it, and the node's own copy stays as it is.
package keep
