// Package fleet measures the controller beside many nodes: the built program in a
// process of its own, and nodes that have the real agent's join, exchange and lease, each
// over TLS and with a key of its own, while their jobs are timers instead of containers.
package fleet
