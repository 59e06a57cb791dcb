package loop

import "sync"

// Notifier lets many wait for the next change of a key. The zero value is ready.
type Notifier[K comparable] struct {
	mu sync.Mutex
	m  map[K]*waiting
}

type waiting struct {
	ch      chan struct{}
	waiters int
}

// Wait returns a channel that is closed at the next notify of k. Look at the
// state after calling it, not before, or a change in between is missed. Call done
// when no longer waiting.
func (n *Notifier[K]) Wait(k K) (ring <-chan struct{}, done func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.m == nil {
		n.m = map[K]*waiting{}
	}
	b := n.m[k]
	if b == nil {
		b = &waiting{ch: make(chan struct{})}
		n.m[k] = b
	}
	b.waiters++
	return b.ch, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if b.waiters--; b.waiters == 0 && n.m[k] == b {
			delete(n.m, k)
		}
	}
}

// Notify wakes those who wait for k.
func (n *Notifier[K]) Notify(k K) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if b := n.m[k]; b != nil {
		delete(n.m, k)
		close(b.ch)
	}
}

// Waiting is how many wait for k.
func (n *Notifier[K]) Waiting(k K) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if b := n.m[k]; b != nil {
		return b.waiters
	}
	return 0
}
