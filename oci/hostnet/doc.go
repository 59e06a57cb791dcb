// Package hostnet keeps containers that have the node's network from what the
// node offers to itself: services that listen on its loopback addresses, and
// the link-local and metadata addresses at which clouds hand out credentials.
// It attaches BPF programs to the containers' group of the cgroup v2 hierarchy,
// and knows nothing of jobs. The group takes them along when it is removed.
//
// What may be reached on loopback is decided by who listens there at that
// moment: a socket that was made in the same group may, and nothing else. So a
// container's own processes find each other as usual. The unspecified address,
// which the kernel may take for any of the loopback ones, is refused.
package hostnet
