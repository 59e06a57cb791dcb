// Package streams joins clients with ranks: logs, commands, terminals and
// ports. The node dials back for each; nobody who reads slowly holds up
// another, or the rank.
package streams
