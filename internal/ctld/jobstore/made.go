package jobstore

import (
	"sync"
	"time"

	"gbatch/internal/state"
)

// Made keeps what was last made of a view: who asks after another asks for the same,
// while little changes, and who may be told what is a little old is told what was
// made for others. What is made must not change any more.
type Made[T any] struct {
	mu    sync.Mutex
	view  *state.View // that last was made of
	last  T
	valid time.Time // when view was the newest
}

// Of is what of makes of a view, or made of one that was the newest less than age ago.
func (m *Made[T]) Of(v *state.View, now time.Time, age time.Duration, of func(*state.View) T) T {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.view == v:
		m.valid = now
	case m.view == nil || age == 0 || now.Sub(m.valid) > age:
		m.view, m.last, m.valid = v, of(v), now
	}
	return m.last
}
