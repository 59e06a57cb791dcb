package node

// Reboot is a node's word on an operator's order to reboot it. That it came back is told
// by its boot, and by its checks.
type Reboot struct {
	Seq    uint64 `json:"seq"`              // of the order
	Failed string `json:"failed,omitempty"` // why it cannot be rebooted
}
