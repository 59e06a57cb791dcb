// Package node is what a node and the controller tell each other, in values:
// what a node has to give, how far its ranks are and how they ended. The wire
// (internal/api) and the records (internal/state) carry the same values; who
// sends and who keeps them is not decided here. Whoever holds a value may copy
// it, and nobody changes one that was given away.
package node
