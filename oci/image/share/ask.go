package share

import (
	"context"
	"io"
	"sync"
	"time"
)

// Peer is another node that may have an image's layers.
type Peer interface {
	// Layer opens a layer of an image by the digest of its compressed bytes. The node may wait
	// so long for it to come there. ErrLacks: it may have it later.
	Layer(ctx context.Context, image, digest string, wait time.Duration) (io.ReadCloser, error)
}

// Asking is the nodes that one pull may ask.
type Asking struct {
	mu      sync.Mutex
	list    []*Asked
	wait    time.Duration // that is left for waiting
	waiting int           // layers that wait now
	since   time.Time     // when the first of them began to
}

// Asked is a node, and whether it is asked no more.
type Asked struct {
	Peer
	bad bool
}

// Set names the nodes, in the order in which they are asked, and how long may be waited for them in all.
func (p *Asking) Set(list []Peer, wait time.Duration) {
	for _, one := range list {
		p.list = append(p.list, &Asked{Peer: one})
	}
	p.wait = wait
}

// Good are those that have not failed.
func (p *Asking) Good() (list []*Asked) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.list {
		if !one.bad {
			list = append(list, one)
		}
	}
	return list
}

// Leave asks a node no more.
func (p *Asking) Leave(one *Asked) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one.bad = true
}

// Wait begins to wait, for at most as long as it says, until done. What layers wait at the same
// time counts once.
func (p *Asking) Wait() (most time.Duration, done func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.waiting++; p.waiting == 1 {
		p.since = now
	}
	return max(0, p.wait-now.Sub(p.since)), func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.waiting--; p.waiting == 0 {
			p.wait -= time.Since(p.since)
		}
	}
}
