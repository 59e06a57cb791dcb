package places

import (
	"context"
	"sync"

	"gbatch/internal/ctld/fair"
)

// Gate lets few work at once, whoever they are. Those who wait are let in by turns
// of users, so that who has ten times as much waiting has one place in as many
// turns as anybody. Create it with NewGate.
type Gate struct {
	mu    sync.Mutex
	free  int
	queue *fair.Queue[*waiter]
}

type waiter struct {
	turn chan struct{} // closed when it is let in, or put out
	out  bool
	gone bool // it does not wait any more
}

// NewGate lets n work at once, and most wait.
func NewGate(n, most int) *Gate { return &Gate{free: n, queue: fair.NewQueue[*waiter](most)} }

// Enter waits for a turn; false: ctx is done, or too many wait. Call leave after
// true.
func (g *Gate) Enter(ctx context.Context, user string) (leave func(), ok bool) {
	w := &waiter{turn: make(chan struct{})}
	g.mu.Lock()
	if put, ok := g.queue.Put(user, 1, w); !ok {
		put.out = true
		close(put.turn)
	}
	g.next()
	g.mu.Unlock()
	select {
	case <-w.turn:
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-w.turn:
		if w.out {
			return nil, false
		}
		return sync.OnceFunc(g.leave), true
	default:
		w.gone = true
		return nil, false
	}
}

func (g *Gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.free++
	g.next()
}

// next lets in as many as there is room for.
func (g *Gate) next() {
	for g.free > 0 && g.queue.Len() > 0 {
		for _, w := range g.queue.Take(1, 1) {
			if !w.gone {
				g.free--
				close(w.turn)
			}
		}
	}
}
