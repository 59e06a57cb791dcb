package attach

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/client"
)

// The size that a terminal is taken to have when there is none here.
const (
	defaultWidth  = 80
	defaultHeight = 24
)

// Size is the terminal's size in columns and lines.
func Size(a *cli.App) (width, height uint16) {
	for _, stream := range []any{a.Out, a.In, a.Err} {
		f, ok := stream.(*os.File)
		if !ok {
			continue
		}
		w, h, err := term.GetSize(int(f.Fd()))
		if err == nil && w > 0 && h > 0 && w <= 1<<16-1 && h <= 1<<16-1 {
			return uint16(w), uint16(h)
		}
	}
	return defaultWidth, defaultHeight
}

// TakeTerminal hands every key to the program in the job and, if sizes, tells it
// when the window changes its size. restore puts the terminal back.
func TakeTerminal(ctx context.Context, a *cli.App, st *client.Stream, sizes bool) (restore func(), err error) {
	putBack, err := rawTerminal(a)
	if err != nil || !sizes {
		return putBack, err
	}
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	go sendSizes(ctx, a, st, resized) // ends with the program
	return func() { signal.Stop(resized); putBack() }, nil
}

func sendSizes(ctx context.Context, a *cli.App, st *client.Stream, resized <-chan os.Signal) {
	for {
		select {
		case <-resized:
			if st.Send(ctx, api.ResizeFrame(Size(a))) != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// rawTerminal hands every key to the command, if a person is at the keyboard.
func rawTerminal(a *cli.App) (restore func(), err error) {
	in, ok := a.In.(*os.File)
	if !ok || !a.Term.In {
		return func() {}, nil
	}
	a.Hear()
	old, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, fmt.Errorf("prepare the terminal: %w", err)
	}
	return func() { _ = term.Restore(int(in.Fd()), old) }, nil // or the terminal has gone
}
