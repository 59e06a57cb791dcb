package contact

import (
	"context"
	"sync"
	"time"
)

// How long a change may wait for others to go with it. An end is told at once:
// what the rank held can be given to the next. The rest is told soon, so that
// a short job needs one message from acceptance to end.
const (
	AtOnce         = 0
	WithinRunning  = 20 * time.Millisecond
	WithinProgress = 250 * time.Millisecond
	WithinPull     = time.Second
	WithinSamples  = 5 * time.Second // steady work of GPUs costs no message of its own
)

// updates is when there is something to tell.
type updates struct {
	wake chan struct{}

	mu      sync.Mutex
	at      time.Time // when it is due; zero: there is none
	gathers time.Time // until when what is not for at once waits for something that is
}

// tell asks for a sync within the given time.
func (u *updates) tell(within time.Duration) {
	at := time.Now().Add(within)
	u.mu.Lock()
	if within > AtOnce && at.Before(u.gathers) {
		at = u.gathers
	}
	sooner := u.at.IsZero() || at.Before(u.at)
	if sooner {
		u.at = at
	}
	u.mu.Unlock()
	if sooner {
		select {
		case u.wake <- struct{}{}:
		default:
		}
	}
}

// due waits until there is something to tell. It stays due until it is taken.
func (u *updates) due(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		u.mu.Lock()
		at := u.at
		u.mu.Unlock()
		left := time.Until(at)
		switch {
		case at.IsZero():
			left = time.Hour
		case left <= 0:
			return ctx.Err()
		}
		timer.Reset(left)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-u.wake:
		case <-timer.C:
		}
	}
}

// taken says that a report is about to be gathered: it has all that was to be told by now.
func (u *updates) taken() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.at = time.Time{}
}

// isDue says whether there is something to tell now.
func (u *updates) isDue() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return !u.at.IsZero() && !time.Now().Before(u.at)
}

// gather has all wait for so long that is not to be told at once.
func (u *updates) gather(so time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now() // what was told at once is not after it
	u.gathers = now.Add(so)
	if u.at.After(now) && u.at.Before(u.gathers) {
		u.at = u.gathers
	}
}

// gathering is for how much longer.
func (u *updates) gathering() time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	return time.Until(u.gathers)
}
