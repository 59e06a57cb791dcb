package image

import (
	"context"
	"sync"
)

// flights lets callers who want the same thing at the same time share one
// piece of work. The work runs under the store's context, not under that of
// the caller who happened to come first: a caller who gives up leaves the
// others unharmed. When the last one gives up, the work is cancelled.
type flights[V any] struct {
	base context.Context // ends when the store closes
	wg   *sync.WaitGroup // the store waits for all work in Close

	mu      sync.Mutex
	running map[string]*flight[V]
}

type flight[V any] struct {
	done     chan struct{} // closed when value and err are set
	value    V
	err      error
	progress hub

	waiters int // guarded by flights.mu
	cancel  context.CancelFunc
}

func newFlights[V any](base context.Context, wg *sync.WaitGroup) *flights[V] {
	return &flights[V]{base: base, wg: wg, running: map[string]*flight[V]{}}
}

// do joins the work of that key or starts it. joined tells which. It returns
// early, with the cause, when ctx ends.
func (g *flights[V]) do(ctx context.Context, key string, watch func(Progress), work func(context.Context, *hub) (V, error)) (v V, joined bool, err error) {
	f, joined := g.join(key, work)
	defer g.leave(key, f)
	defer f.progress.subscribe(watch)()
	select {
	case <-f.done:
		return f.value, joined, f.err
	case <-ctx.Done():
		return v, joined, context.Cause(ctx)
	}
}

func (g *flights[V]) join(key string, work func(context.Context, *hub) (V, error)) (*flight[V], bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if f := g.running[key]; f != nil {
		f.waiters++
		return f, true
	}
	ctx, cancel := context.WithCancel(g.base)
	f := &flight[V]{done: make(chan struct{}), waiters: 1, cancel: cancel}
	g.running[key] = f
	// Owned by the store, which waits for it in Close.
	g.wg.Go(func() {
		f.value, f.err = work(ctx, &f.progress)
		g.forget(key, f)
		close(f.done)
		cancel()
	})
	return f, false
}

func (g *flights[V]) leave(key string, f *flight[V]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if f.waiters--; f.waiters > 0 {
		return
	}
	// Whoever comes now starts afresh instead of joining cancelled work.
	if g.running[key] == f {
		delete(g.running, key)
	}
	f.cancel()
}

func (g *flights[V]) forget(key string, f *flight[V]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running[key] == f {
		delete(g.running, key)
	}
}

// hub passes progress on to whoever is waiting for a flight.
type hub struct {
	mu     sync.Mutex
	last   Progress
	digest string // of the image, once known
	next   int
	subs   map[int]func(Progress)
}

// subscribe calls f with the last progress and all later ones, until the
// returned function has been called. f may be nil.
func (h *hub) subscribe(f func(Progress)) (cancel func()) {
	if f == nil {
		return func() {}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.subs == nil {
		h.subs = map[int]func(Progress){}
	}
	id := h.next
	h.next++
	h.subs[id] = f
	if h.last != (Progress{}) {
		f(h.last)
	}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.subs, id)
	}
}

func (h *hub) publish(p Progress) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p.Digest = h.digest
	h.last = p
	for _, f := range h.subs {
		f(p)
	}
}

// found notes which image the work is about.
func (h *hub) found(digest string) {
	h.mu.Lock()
	h.digest = digest
	p := h.last
	h.mu.Unlock()
	h.publish(p)
}
