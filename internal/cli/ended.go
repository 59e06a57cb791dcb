package cli

import (
	"context"
	"os"
	"os/signal"
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

// TakeSignals has the signals that tell a command to end come to the caller in place of
// that, until they are given back.
func (a *App) TakeSignals() (signals <-chan os.Signal, back func()) {
	taken := make(chan os.Signal, 4)
	if a.heard == nil {
		return taken, func() {}
	}
	signal.Stop(a.heard)
	hear(taken)
	return taken, func() {
		signal.Stop(taken)
		hear(a.heard)
	}
}

// untilSignal is a context until the first signal that tells the process to end.
// The second one ends it at once.
func (a *App) untilSignal() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	heard := make(chan os.Signal, 1)
	a.heard = heard
	hear(heard)
	go func() { // ends with the context
		select {
		case sig := <-heard:
			signal.Stop(heard)
			number, _ := sig.(syscall.Signal)
			cancel(&ended{number})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(heard)
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
