package streams

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"gbatch/internal/api"
	"gbatch/oci"
	"gbatch/oci/logs"
	"gbatch/oci/result"
	"gbatch/oci/stdio"
)

// attachment is a client at the terminal of a rank's own program. What it sees
// comes out of the log, so that one who does not read holds up nobody, and what
// it types goes to the terminal. Any number of clients may be there at once.
type attachment struct {
	*session
	container *oci.Container
	terminal  *os.File
	stir      chan struct{} // something was typed: an echo may follow
}

// replay is how much of the latest output a client sees first.
const replay = 8 << 10

// serveAttach joins the client with the terminal. An error has not been told
// yet. Nothing that the client or this daemon does ends the program.
func serveAttach(ctx context.Context, s *session, container *oci.Container, start []byte) error {
	var want api.AttachStart
	if err := json.Unmarshal(start, &want); err != nil {
		return fmt.Errorf("read how to attach: %w", err)
	}
	a := &attachment{session: s, container: container, stir: make(chan struct{}, 1)}
	var err error
	if a.terminal, err = container.Terminal(); err != nil {
		if errors.Is(err, oci.ErrNoTerminal) {
			err = errors.New("the job has no terminal: it was not submitted with --interactive or \"gbatch\": {\"terminal\": true}; a shell beside it is gexec ID")
		}
		return err
	}
	defer a.terminal.Close()
	log, err := container.Log()
	if err != nil {
		return err
	}
	defer log.Close()
	off := int64(0)
	if !want.All {
		if off, err = recent(log); err != nil {
			return err
		}
	}
	if want.Width > 0 && want.Height > 0 {
		_ = stdio.Resize(a.terminal, want.Width, want.Height) // of a program that ends at this moment
	}
	a.run(ctx, log, off)
	return nil
}

// recent is where the part of the output begins that a client sees first: at
// a line's beginning.
func recent(log *logs.Log) (int64, error) {
	end, err := log.End()
	if err != nil {
		return 0, err
	}
	from := max(0, end-replay)
	block, err := log.Block(from, end)
	if err != nil || from == 0 {
		return 0, err
	}
	for i, b := range block {
		if b == '\n' {
			return end - int64(len(block)-i) + 1, nil
		}
	}
	return from, nil
}

// run works until the program has ended and the client was told, or the client
// or the daemon goes.
func (a *attachment) run(ctx context.Context, log *logs.Log, off int64) {
	a.session.run(ctx, peer{in: a, other: a.resize, stop: func() {},
		last: func(live context.Context) api.Frame { return a.end(a.show(live, log, off)) }})
	_ = a.terminal.SetWriteDeadline(time.Unix(1, 0)) // ends a write that nobody takes
	a.st.Close()
	a.copies.Wait()
}

// Write types p at the terminal.
func (a *attachment) Write(p []byte) (int, error) {
	n, err := a.terminal.Write(p)
	select {
	case a.stir <- struct{}{}:
	default:
	}
	return n, err
}

func (a *attachment) resize(f api.Frame) {
	if f.Type == api.FrameResize {
		width, height := f.Size()
		_ = stdio.Resize(a.terminal, width, height) // of a program that ends at this moment
	}
}

// The pauses between two looks into the log: short after something was typed
// or written, longer while nothing happens.
const (
	quickLook = 2 * time.Millisecond
	slowLook  = 50 * time.Millisecond
)

// show sends the log from off on until its end.
func (a *attachment) show(ctx context.Context, log *logs.Log, off int64) error {
	pause := quickLook
	for {
		ended := a.shimGone() // before the look: what is written up to then is seen
		c, err := log.ReadAt(off)
		if err == nil {
			off = c.Offset + int64(len(c.Data))
			if err := a.send(ctx, append([]byte(c.Notice()), c.Data...)); err != nil {
				return err
			}
			pause = quickLook
			continue
		}
		if !errors.Is(err, io.EOF) || ended {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-a.stir:
			pause = quickLook
		case <-a.container.Done():
		case <-timer.C:
			pause = min(2*pause, slowLook)
		}
		timer.Stop()
	}
}

func (a *attachment) shimGone() bool {
	select {
	case <-a.container.Done():
		return true
	default:
		return false
	}
}

func (a *attachment) send(ctx context.Context, p []byte) error {
	for len(p) > 0 {
		n := min(len(p), api.FrameChunk)
		if err := a.st.Send(ctx, api.Frame{Type: api.FrameOutput, Data: p[:n]}); err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}

// end is what the client is told last.
func (a *attachment) end(err error) api.Frame {
	if !errors.Is(err, io.EOF) {
		return api.FailureFrame(125, a.say(fmt.Sprintf("the job's output cannot be read: %v; the job goes on", err)))
	}
	exit, err := result.Read(a.container.Dir())
	if err != nil {
		return api.FailureFrame(125, "how the job ended is not known yet; gqueue show tells it")
	}
	return api.CountFrame(api.FrameExit, exit.Code)
}
