package loop

import (
	"sync"

	"gbatch/sched"
)

// told is when each node was last sent a desired set in this start. Who sends one
// says so before.
type told struct {
	mu sync.Mutex
	by map[string]sched.Time
}

// Telling says that a node is about to be sent its desired set, which may or may
// not reach it.
func (l *Loop) Telling(name string) {
	l.told.mu.Lock()
	defer l.told.mu.Unlock()
	if l.told.by == nil {
		l.told.by = map[string]sched.Time{}
	}
	l.told.by[name] = l.clock.now()
}

func (t *told) at(name string) sched.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.by[name]
}
