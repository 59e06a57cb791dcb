// Package nodes has the handlers of nodes: what they report and are told to do,
// how they join, and what operators do with them.
package nodes
