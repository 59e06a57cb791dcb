package network

import (
	"log/slog"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// leaving takes networks of ended ranks away together: what the kernel does for one, it
// does for many at nearly the same price (docs/design/0004). Until then it holds their
// namespaces, in which nothing runs any more, as the kernel would take each away by itself.
type leaving struct {
	detach func(owners ...string) error // takes networks away
	log    *slog.Logger

	work   sync.WaitGroup // what takes them away
	taking sync.Mutex     // held while some are taken away

	mu     sync.Mutex // guards what follows
	held   map[string]*held
	left   []string // owners that have ended and wait
	timer  *time.Timer
	closed bool
}

// held is the namespace of a rank that runs, or has ended and whose network is there yet.
type held struct {
	ns   *os.File
	left bool
}

// leavingFor is how long an ended rank's network waits for others, and leavingMost how
// many wait at most: some 230 KiB of the kernel's memory each.
const leavingFor, leavingMost = time.Second, 64

// hold keeps an owner's namespace until it leaves. Where it cannot, the kernel takes the
// network away by itself.
func (l *leaving) hold(owner string, ns *os.File) {
	fd, err := unix.FcntlInt(ns.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		l.log.Debug("hold a network", "owner", owner, "error", err)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = map[string]*held{}
	}
	l.held[owner] = &held{ns: os.NewFile(uintptr(fd), "network of "+owner)}
}

// leave says that an owner has ended, and whether its network goes with others': false
// where it is not held.
func (l *leaving) leave(owner string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.held[owner]
	if h == nil || l.closed {
		return false
	}
	if h.left {
		return true
	}
	h.left = true
	l.left = append(l.left, owner)
	switch {
	case len(l.left) == leavingMost:
		l.work.Go(func() { l.clear() }) // waited for by close
	case l.timer == nil:
		l.timer = time.AfterFunc(leavingFor, l.expire)
	}
	return true
}

// begin makes way for a new network of an owner that may have had one.
func (l *leaving) begin(owner string) {
	l.mu.Lock()
	h := l.held[owner]
	l.mu.Unlock()
	if h != nil {
		l.leave(owner)
		l.clear()
	}
}

func (l *leaving) expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = nil
	if !l.closed {
		l.work.Go(func() { l.clear() }) // waited for by close
	}
}

// clear takes away all that have left, and says whether there were any: they have
// addresses that a rank may need.
func (l *leaving) clear() bool {
	l.taking.Lock()
	defer l.taking.Unlock()
	l.mu.Lock()
	owners := l.left
	l.left = nil
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	l.mu.Unlock()
	if err := l.detach(owners...); err != nil {
		// With their namespaces the kernel takes them away by itself.
		l.log.Error("remove networks of ended ranks", "error", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range owners {
		l.held[o].ns.Close()
		delete(l.held, o)
	}
	return len(owners) > 0
}

// close takes away all that have left, and lets go of the others.
func (l *leaving) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.work.Wait()
	l.clear()
	for _, h := range l.held {
		h.ns.Close()
	}
}
