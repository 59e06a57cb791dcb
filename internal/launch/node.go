package launch

// What the first rank and its node's daemon say to each other, over the socket
// that the daemon has in the container: lines of JSON. Each request is answered
// by a line with its sequence number; the daemon says by itself which steps
// shall be cancelled.

// NodeRequest is a line to the daemon. It may be sent again: a step is begun once
// for each Key.
type NodeRequest struct {
	Seq   uint64     `json:"seq"`
	Begin *NodeBegin `json:"begin,omitempty"`
	End   *NodeEnd   `json:"end,omitempty"`
}

// NodeBegin asks for a step to be recorded and numbered.
type NodeBegin struct {
	Key   string `json:"key"`
	Name  string `json:"name"`
	Image string `json:"image,omitempty"`
	Tasks int    `json:"tasks"`
	CPUs  int    `json:"cpus"` // of all tasks together
	GPUs  int    `json:"gpus,omitempty"`
	Ranks []int  `json:"ranks"`
}

// NodeEnd says how a step ended.
type NodeEnd struct {
	Step uint32 `json:"step"`
	Done

	// Killed is how many processes of steps the memory limit has ended on this rank so far.
	Killed uint64 `json:"killed,omitempty"`
}

// NodeReply is a line from the daemon.
type NodeReply struct {
	Seq    uint64   `json:"seq,omitempty"`
	Step   uint32   `json:"step,omitempty"`   // that was begun
	Error  string   `json:"error,omitempty"`  // why not; it is no use to ask again
	Later  bool     `json:"later,omitempty"`  // the controller cannot be reached: ask again
	Cancel []uint32 `json:"cancel,omitempty"` // steps to be ended; without Seq
}
