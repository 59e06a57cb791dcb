package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/term"

	"gbatch/internal/api"
	"gbatch/internal/client"
)

// ExecOptions are what gexec runs and how.
type ExecOptions struct {
	Args     []string // none: a shell
	Rank     int
	User     string
	WorkDir  string
	Env      []string // K=V, or K for the value that it has here
	Terminal bool     // always
	Pipes    bool     // never a terminal
	Attach   bool     // no command: the job's own program
}

// Enter is gexec: it attaches to the job's own program, forwards ports if there
// are any to forward, or runs a command.
func (a *App) Enter(ctx context.Context, id string, forwards []string, o ExecOptions) error {
	if len(o.Args) > 0 && o.Args[0] == "--" {
		o.Args = o.Args[1:]
	}
	switch {
	case o.Rank < 0:
		return usageError("--rank %d: ranks count from 0", o.Rank)
	case o.Attach && (len(forwards) > 0 || len(o.Args) > 0 || o.User != "" || o.WorkDir != "" || len(o.Env) > 0 || o.Terminal || o.Pipes):
		return usageError("--attach joins the program that runs already: of the other flags it takes --rank alone")
	case o.Attach:
		return a.Attach(ctx, id, o.Rank)
	case len(forwards) == 0:
		return a.Exec(ctx, id, o)
	case len(o.Args) > 0:
		return usageError("--forward takes no command; run another gexec beside it")
	}
	return a.Forward(ctx, id, o.Rank, forwards)
}

// Exec runs a command in a running job and ends with its exit code.
func (a *App) Exec(ctx context.Context, id string, o ExecOptions) error {
	start, err := a.execStart(o)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP, syscall.SIGQUIT) // so that the terminal is put back
	defer stop()
	st, err := a.Client.Exec(ctx, id, o.Rank)
	if err != nil {
		return err
	}
	defer st.Close()
	if err := st.Send(ctx, api.JSONFrame(api.FrameStart, start)); err != nil {
		return brokenStream(ctx)
	}
	if start.Terminal {
		restore, err := a.rawTerminal()
		if err != nil {
			return err
		}
		defer restore()
		resized := make(chan os.Signal, 1)
		signal.Notify(resized, syscall.SIGWINCH)
		defer signal.Stop(resized)
		go a.sendSizes(ctx, st, resized) // ends with the program
	}
	go a.sendInput(ctx, st) // ends with the program: reading standard input cannot be broken off
	return a.receiveExec(ctx, st)
}

func (a *App) execStart(o ExecOptions) (api.ExecStart, error) {
	start := api.ExecStart{Args: o.Args, WorkDir: o.WorkDir, User: o.User}
	shellAtTerminal := len(o.Args) == 0 && a.Term.In && a.Term.Out
	start.Terminal = o.Terminal || shellAtTerminal && !o.Pipes
	if start.Terminal {
		start.Width, start.Height = a.size()
		if kind := os.Getenv("TERM"); kind != "" {
			start.Env = append(start.Env, "TERM="+kind)
		}
	}
	for _, kv := range o.Env {
		name, _, given := strings.Cut(kv, "=")
		value, here := os.LookupEnv(name)
		switch {
		case name == "":
			return start, usageError("--env %q has no name: want NAME=VALUE", kv)
		case !given && !here:
			return start, usageError("--env %s has no value: want %s=VALUE, or a variable that is set here", kv, name)
		case !given:
			kv = name + "=" + value
		}
		start.Env = append(start.Env, kv)
	}
	if f := api.JSONFrame(api.FrameStart, start); len(f.Data) >= api.MaxFrame/2 {
		return start, usageError("the command and its environment are longer than %d KiB; send it as standard input, as gexec 12 -- sh < script", api.MaxFrame/2>>10)
	}
	return start, nil
}

// receiveExec shows what the command writes and returns how it ended.
func (a *App) receiveExec(ctx context.Context, st *client.Stream) error {
	for {
		f, err := st.Receive(ctx)
		if err != nil {
			return brokenStream(ctx)
		}
		switch f.Type {
		case api.FrameOutput:
			_, err = a.Out.Write(f.Data)
		case api.FrameErrOutput:
			_, err = a.Err.Write(f.Data)
		case api.FrameError:
			failure := f.Failure()
			return &exitError{failure.Code, failure}
		case api.FrameExit:
			if code := f.Count(); code != 0 {
				return &exitError{code: code}
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("write the command's output: %w", err)
		}
	}
}

// brokenStream is a stream's end without a result.
func brokenStream(ctx context.Context) error {
	if ctx.Err() != nil {
		return &exitError{code: ExitInterrupted}
	}
	return errors.New("the controller broke the stream off: it was restarted or cannot be reached; what ran in the job for you is ended, the job is not")
}

// sendInput sends standard input until its end.
func (a *App) sendInput(ctx context.Context, st *client.Stream) {
	buf := make([]byte, api.FrameChunk)
	for {
		n, err := a.In.Read(buf)
		if n > 0 && st.SendInput(ctx, buf[:n]) != nil {
			return // the receiver says why
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				a.say("read standard input: %v", err)
			}
			_ = st.Send(ctx, api.Frame{Type: api.FrameEndInput}) // the same
			return
		}
	}
}

// The size that a terminal is taken to have when there is none here.
const (
	defaultWidth  = 80
	defaultHeight = 24
)

// size is the terminal's size in columns and lines.
func (a *App) size() (width, height uint16) {
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

func (a *App) sendSizes(ctx context.Context, st *client.Stream, resized <-chan os.Signal) {
	for {
		select {
		case <-resized:
			if st.Send(ctx, api.ResizeFrame(a.size())) != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// rawTerminal hands every key to the command, if a person is at the keyboard.
func (a *App) rawTerminal() (restore func(), err error) {
	in, ok := a.In.(*os.File)
	if !ok || !a.Term.In {
		return func() {}, nil
	}
	old, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, fmt.Errorf("prepare the terminal: %w", err)
	}
	return func() { _ = term.Restore(int(in.Fd()), old) }, nil // or the terminal has gone
}
