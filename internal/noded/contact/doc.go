// Package contact keeps up the exchange with the controller: one long poll by
// which orders arrive, a message when there is an update, and the lease, by which
// the node's ranks end before their tasks can start elsewhere. What the node
// says and does is the node's.
package contact
