package fit

import (
	"fmt"
	"slices"

	"gbatch/internal/control/picture"
	"gbatch/internal/node"
	"gbatch/internal/state"
)

// Bounds of a machine, such that sums over nodes are numbers.
const (
	maxCPUs  = 1 << 20
	maxBytes = 1 << 60
)

// Unusable is why what a node says that it has cannot be used; empty: it can.
func Unusable(name string, v *node.Inventory) string {
	const says = "its inventory cannot be used: "
	if v.CPUs < 0 || v.CPUs > maxCPUs || v.MemBytes < 0 || v.MemBytes > maxBytes || v.DiskBytes < 0 || v.DiskBytes > maxBytes {
		return says + fmt.Sprintf("it has %d cores, %d bytes of memory and %d of disk", v.CPUs, v.MemBytes, v.DiskBytes)
	}
	probe := picture.Node(&state.Node{Name: name, Inventory: state.Inventory{Inventory: *v}})
	if err := probe.Validate(); err != nil {
		return says + err.Error()
	}
	return ""
}

// Take has n have the inventory that it sent; nil: it only named its hash. One that cannot be
// used is refused, and nothing else of what the node says: the last good one stays, what runs
// there goes on, and nothing new starts until the node has another one.
func Take(n *state.Node, hash string, sent *node.Inventory) {
	if n.Refused.Hash != hash {
		n.Refused = state.Refused{}
	}
	if sent != nil {
		if n.Refused = (state.Refused{Hash: hash, Why: Unusable(n.Name, sent)}); n.Refused.Why == "" {
			n.Inventory, n.Hash, n.Refused = state.Inventory{Inventory: *sent}, hash, state.Refused{}
		}
	}
	if n.Refused.Why != "" {
		n.Unhealthy = append(slices.Clip(n.Unhealthy), n.Refused.Why+"; the one before it is gone by: see `gnoded check` there")
	}
}
