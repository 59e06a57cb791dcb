package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"gbatch/internal/api"
	"gbatch/internal/client"
)

// errDetached says that the user left the job's terminal.
var errDetached = errors.New("detached")

// Attach joins the user with the terminal of a running job's own program. It
// ends with the program's exit code, or with 0 when the user leaves.
func (a *App) Attach(ctx context.Context, id string, rank int) error {
	code, err := a.attach(ctx, id, rank, attachOptions{})
	switch {
	case errors.Is(err, errDetached):
		a.sayDetached(id)
		return nil
	case err == nil && code != 0:
		return &exitError{code: code}
	}
	return err
}

func (a *App) sayDetached(id string) {
	a.say("detached; job %s goes on. Attach again: gexec --attach %s. End it: gcancel %s", id, id, id)
}

type attachOptions struct {
	all      bool // show all output from the beginning
	endInput bool // the end of standard input is an end of input at the terminal
}

// attach is Attach, and gives the program's exit code.
func (a *App) attach(ctx context.Context, id string, rank int, o attachOptions) (int, error) {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP, syscall.SIGQUIT) // so that the terminal is put back
	defer stop()
	st, err := a.Client.Attach(ctx, id, rank)
	if err != nil {
		return 0, err
	}
	defer st.Close()
	start := api.AttachStart{All: o.all}
	if a.Term.In && a.Term.Out {
		start.Width, start.Height = a.size()
	}
	if err := st.Send(ctx, api.JSONFrame(api.FrameStart, start)); err != nil {
		return 0, brokenAttach(ctx)
	}
	if a.Term.In {
		a.say("attached to job %s; leave it with Enter ~ . (it goes on), or end it as its program ends", id)
	}
	restore, err := a.rawTerminal()
	if err != nil {
		return 0, err
	}
	defer restore()
	if start.Width > 0 {
		resized := make(chan os.Signal, 1)
		signal.Notify(resized, syscall.SIGWINCH)
		defer signal.Stop(resized)
		go a.sendSizes(ctx, st, resized) // ends with the program
	}
	left := make(chan struct{})
	go func() { // ends with the program: reading standard input cannot be broken off
		if a.sendKeys(ctx, st, o) {
			close(left)
			st.Close()
		}
	}()
	code, err := a.receiveAttached(ctx, st)
	select {
	case <-left:
		return 0, errDetached
	default:
		return code, err
	}
}

func (a *App) receiveAttached(ctx context.Context, st *client.Stream) (int, error) {
	for {
		f, err := st.Receive(ctx)
		if err != nil {
			return 0, brokenAttach(ctx)
		}
		switch f.Type {
		case api.FrameOutput:
			_, err = a.Out.Write(f.Data)
		case api.FrameError:
			failure := f.Failure()
			return 0, &exitError{failure.Code, failure}
		case api.FrameExit:
			return f.Count(), nil
		}
		if err != nil {
			return 0, fmt.Errorf("write the job's output: %w", err)
		}
	}
}

// brokenAttach is a stream's end without a result.
func brokenAttach(ctx context.Context) error {
	if ctx.Err() != nil {
		return &exitError{code: ExitInterrupted}
	}
	return errors.New("the controller broke the stream off: it was restarted or cannot be reached; the job goes on: attach again")
}

// sendKeys sends standard input until its end, and says whether the user asked
// to leave.
func (a *App) sendKeys(ctx context.Context, st *client.Stream, o attachOptions) (leave bool) {
	const endOfTransmission = 4
	keys := keys{person: a.Term.In, fresh: true}
	buf := make([]byte, api.FrameChunk/2) // keys may add one byte for each
	for {
		n, err := a.In.Read(buf)
		send, leave := keys.take(buf[:n])
		if len(send) > 0 && st.SendInput(ctx, send) != nil {
			return false // the receiver says why
		}
		if leave {
			return true
		}
		if err == nil {
			continue
		}
		if !errors.Is(err, io.EOF) {
			a.say("read standard input: %v", err)
		}
		if o.endInput {
			_ = st.SendInput(ctx, []byte{endOfTransmission}) // the same
		}
		return false
	}
}

// keys looks for the user's wish to leave: "~." at the beginning of a line, as
// with ssh. "~~" is one "~".
type keys struct {
	person bool // else all is sent as it is
	fresh  bool // at the beginning of a line
	tilde  bool // one was held back
}

func (k *keys) take(p []byte) (send []byte, leave bool) {
	if !k.person {
		return p, false
	}
	for _, b := range p {
		switch {
		case k.tilde && b == '.':
			return send, true
		case k.tilde && b != '~':
			send = append(send, '~', b)
		case k.fresh && b == '~':
			k.tilde, k.fresh = true, false
			continue
		default:
			send = append(send, b)
		}
		k.tilde, k.fresh = false, b == '\r' || b == '\n'
	}
	return send, false
}

// interactiveJob waits for a job that was submitted with --interactive and joins
// the user with its terminal. It ends with the job's exit code.
func (a *App) interactiveJob(ctx context.Context, id string) error {
	d, err := a.awaitRun(ctx, id)
	if err != nil {
		return a.interrupted(err, id, d)
	}
	if !hasLog(d) {
		return a.jobEnd(d)
	}
	_, err = a.attach(ctx, id, 0, attachOptions{all: true, endInput: !a.Term.In})
	switch {
	case errors.Is(err, errDetached):
		a.sayDetached(id)
		return nil
	case client.IsCode(err, api.CodeConflict): // it has ended before we came
		d, err = a.followLog(ctx, id, d)
	case err != nil:
		return err
	default:
		d, err = a.watch(ctx, id, func(*api.JobDetail) bool { return false })
	}
	if err != nil {
		return a.interrupted(err, id, d)
	}
	return a.jobEnd(d)
}
