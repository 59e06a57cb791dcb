package node

// Fault is something that happened on a node and is seen to by an operator before
// it gets jobs again. The node says it until the controller has noted it.
type Fault struct {
	Seq  uint64 `json:"seq"` // grows over restarts of the daemon, within an instance
	Text string `json:"text"`
}
