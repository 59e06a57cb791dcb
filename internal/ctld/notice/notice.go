// Package notice writes into the log what may happen at every request, such that
// nobody fills the log by asking: when it begins, once a minute how often it was
// since, and when it is over.
package notice

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// every is how often at most a line is written about what goes on.
const every = time.Minute

// Notice is one thing that may happen often. Its fields must not change once it
// is used.
type Notice struct {
	Log   *slog.Logger
	Level slog.Level
	Text  string           // what happens
	Over  string           // that it is over
	Now   func() time.Time // nil: time.Now

	mu    sync.Mutex
	on    bool
	since time.Time // of the last line that it happens
	times int       // that it happened and no line said so
}

func (n *Notice) now() time.Time {
	if n.Now == nil {
		return time.Now()
	}
	return n.Now()
}

// Happened notes it; the attributes are written if a line is.
func (n *Notice) Happened(attrs ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.now()
	if !n.since.IsZero() && now.Sub(n.since) < every {
		n.times++
		return
	}
	if n.times > 0 {
		attrs = append(attrs, "times_before", n.times)
	}
	n.Log.Log(context.Background(), n.Level, n.Text, attrs...)
	n.on, n.since, n.times = true, now, 0
}

// Ended says that it does not happen any more. To say so when nothing has
// happened is fine.
func (n *Notice) Ended(attrs ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.on {
		return
	}
	n.on = false
	n.Log.Info(n.Over, append(attrs, "times_before", n.times)...)
	n.times = 0
}
