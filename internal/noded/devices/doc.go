// Package devices is the one place where accelerators come into the node:
// which there are, how a container gets them, and how they fare. It knows
// nothing of ranks.
package devices
