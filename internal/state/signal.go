package state

// Sent is a signal for the processes of an attempt. Each rank's node delivers it
// at most once: it notes the number before it sends, and a note that was written
// is never sent again.
type Sent struct {
	Seq  uint32 `json:"seq"` // from 1, in the attempt
	Name string `json:"name"`
	By   string `json:"by"`
}
