// Package rank is one container's life on this node: the ordered steps of its
// start, each of which can be undone without having been done, and twice;
// watching it while it runs; and its end. A rank decides nothing about others,
// and sees of the node what a Node has. It owns its directory, and what it is
// given by the node's parts until it gives that back.
package rank
