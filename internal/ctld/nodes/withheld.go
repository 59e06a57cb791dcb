package nodes

import (
	"sync"
	"time"
)

// withheld are the nodes that were not told of all that they shall run, as something of one
// job could not be read or stored then. They have the rest, and their leases; they are told
// again when they have said their next word.
type withheld struct {
	mu    sync.Mutex
	nodes map[string]bool
}

// againAfter is how long at most such a node's poll stays open.
const againAfter = 2 * time.Second

// add notes a node, and says whether it was none of them before.
func (w *withheld) add(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.nodes == nil {
		w.nodes = map[string]bool{}
	}
	had := w.nodes[name]
	w.nodes[name] = true
	return !had
}

func (w *withheld) has(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.nodes[name]
}

func (w *withheld) drop(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.nodes, name)
}
