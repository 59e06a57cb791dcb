package ctld

import "sync"

// notifier lets many wait for news about a key. The zero value is ready.
type notifier[K comparable] struct {
	mu sync.Mutex
	m  map[K]*bell
}

type bell struct {
	ch      chan struct{}
	waiters int
}

// wait returns a channel that is closed at the next notify of k. Look at the
// state after calling it, not before, or news in between is missed. Call done
// when no longer waiting.
func (n *notifier[K]) wait(k K) (ring <-chan struct{}, done func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.m == nil {
		n.m = map[K]*bell{}
	}
	b := n.m[k]
	if b == nil {
		b = &bell{ch: make(chan struct{})}
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

func (n *notifier[K]) notify(k K) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if b := n.m[k]; b != nil {
		delete(n.m, k)
		close(b.ch)
	}
}
