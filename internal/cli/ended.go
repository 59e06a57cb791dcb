package cli

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// ended is why a command's context is over: it was told to end.
type ended struct{ signal syscall.Signal }

func (e *ended) Error() string { return e.signal.String() }

// Unwrap lets what asks only whether the context was cancelled see that.
func (*ended) Unwrap() error { return context.Canceled }

// endings are the signals that tell a program to end.
var endings = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}

// hear has signals come by a channel. What the process was begun without, as by nohup or
// behind the & of a script, it goes on without.
func hear(by chan os.Signal) {
	for _, sig := range endings {
		if !signal.Ignored(sig) {
			signal.Notify(by, sig)
		}
	}
}

// hearing is how a run is told to end by a signal.
type hearing struct {
	by chan os.Signal

	mu   sync.Mutex
	done bool // it began, or never will
}

// begin has signals come, unless they do or shall not any more.
func (h *hearing) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.done {
		h.done = true
		hear(h.by)
	}
}

// end has them do again what they do to a program that hears none.
func (h *hearing) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.done = true
	signal.Stop(h.by)
}

// Hear has signals heard from now on, by who is about to change what has to be put back.
func (a *App) Hear() {
	if a.hearing != nil {
		a.hearing.begin()
	}
}

// TakeSignals has the signals that tell a command to end come to the caller in place of
// that, until they are given back.
func (a *App) TakeSignals() (signals <-chan os.Signal, back func()) {
	taken := make(chan os.Signal, 4)
	if a.hearing == nil {
		return taken, func() {}
	}
	a.hearing.end()
	hear(taken)
	return taken, func() {
		signal.Stop(taken)
		hear(a.hearing.by)
	}
}

// deaf is how long after its begin a process hears signals. Most commands are over by then, and to hear
// costs them a sixth of their time: three threads, and a switch between them at each step. Until then it dies
// of a signal, as it does in the end anyway, but without a word.
const deaf = 10 * time.Millisecond

// untilSignal is a context until the first signal that tells the process to end.
// The second one ends it at once.
func (a *App) untilSignal() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	h := &hearing{by: make(chan os.Signal, 1)}
	a.hearing = h
	later := func() bool { return false }
	if a.Deaf > 0 {
		later = time.AfterFunc(a.Deaf, h.begin).Stop
	} else {
		h.begin()
	}
	go func() { // ends with the context
		select {
		case sig := <-h.by:
			signal.Stop(h.by)
			number, _ := sig.(syscall.Signal)
			cancel(&ended{number})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		later()
		h.end()
		cancel(context.Canceled)
	}
}

// Exit ends the process. After a signal that told it to end it dies of that, as
// programs do that do not handle it: so a shell ends the script that called it, too.
func (a *App) Exit(code int) {
	if a.endedBy != 0 && code == 128+int(a.endedBy) {
		if a.endedBy == syscall.SIGQUIT { // Go's own answer is a list of goroutines, and 2
			os.Exit(code)
		}
		signal.Reset(a.endedBy)
		_ = syscall.Kill(os.Getpid(), a.endedBy) // the exit below is for where it has no effect
		time.Sleep(time.Second)
	}
	os.Exit(code)
}
