// Package chaos tests a whole site in one process, under a clock, a network and disks that are
// simulated, while faults befall its parts: a controller, or several that have a log in common, stores, nodes
// and clients. It holds tests and their harness only.
//
// What runs is what sites run: the controller with its loop, its records in pebble, the handlers
// of submissions and of nodes, and the node's part of the exchange with its lease. What a node does
// with its containers is a model, and what it stores of them is not. docs/design/0032-simulation.md says what is outside.
//
// All of it is in a bubble of testing/synctest, and whatever is drawn depends on the seed, on who
// draws and on the time that is shown, and on nothing else. So a seed has the same history each time.
package chaos
