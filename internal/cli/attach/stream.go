package attach

import (
	"context"
	"errors"
	"fmt"
	"io"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/client"
)

// What becomes of the program when its stream breaks off, for the user.
const (
	Ended  = "what ran in the job for you is ended, the job is not"
	goesOn = "the job goes on: attach again"
)

// Receive shows what the program writes and gives its exit code.
func Receive(ctx context.Context, a *cli.App, st *client.Stream, after string) (int, error) {
	for {
		f, err := st.Receive(ctx)
		if err != nil {
			return 0, Broken(ctx, after)
		}
		switch f.Type {
		case api.FrameOutput:
			_, err = a.Out.Write(f.Data)
		case api.FrameErrOutput:
			_, err = a.Err.Write(f.Data)
		case api.FrameError:
			failure := f.Failure()
			return 0, &exit.Error{Code: failure.Code, Err: failure}
		case api.FrameExit:
			return f.Count(), nil
		}
		if err != nil {
			return 0, fmt.Errorf("write the program's output: %w", err)
		}
	}
}

// Broken is a stream's end without a result, and what that means.
func Broken(ctx context.Context, after string) error {
	if ctx.Err() != nil {
		return &exit.Error{Code: exit.Interrupted}
	}
	return errors.New("the controller broke the stream off: it was restarted or cannot be reached; " + after)
}

// SendAll sends standard input until its end, which atEnd tells.
func SendAll(ctx context.Context, a *cli.App, st *client.Stream, atEnd func() error) {
	sendInput(ctx, a, st, keys{}, atEnd)
}

// sendInput sends standard input until its end, which atEnd tells, and says
// whether the user asked to leave.
func sendInput(ctx context.Context, a *cli.App, st *client.Stream, k keys, atEnd func() error) (leave bool) {
	buf := make([]byte, api.FrameChunk/2) // keys may add one byte for each
	for {
		n, err := a.In.Read(buf)
		send, leave := k.take(buf[:n])
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
			a.Say("read standard input: %v", err)
		}
		_ = atEnd() // the same
		return false
	}
}
