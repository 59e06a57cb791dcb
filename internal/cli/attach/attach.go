// Package attach joins the user with a program in a job: with the terminal of the
// job's own, or by a stream that others have opened. It ends with that program.
package attach

import (
	"context"
	"errors"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/follow"
	"gbatch/internal/cli/watch"
	"gbatch/internal/client"
)

// errDetached says that the user left the job's terminal.
var errDetached = errors.New("detached")

// To joins the user with the terminal of a running job's own program. It
// ends with the program's exit code, or with 0 when the user leaves.
func To(ctx context.Context, a *cli.App, id string, rank int) error {
	code, err := join(ctx, a, id, rank, joining{})
	switch {
	case errors.Is(err, errDetached):
		sayDetached(a, id)
		return nil
	case err == nil && code != 0:
		return &exit.Error{Code: code}
	}
	return err
}

func sayDetached(a *cli.App, id string) {
	a.Say("detached; job %s goes on. Attach again: gexec --attach %s. End it: gcancel %s", id, id, id)
}

// joining is how the user is joined with a terminal.
type joining struct {
	all      bool // show all output from the beginning
	endInput bool // the end of standard input is an end of input at the terminal
}

// join is To, and gives the program's exit code.
func join(ctx context.Context, a *cli.App, id string, rank int, o joining) (int, error) {
	st, err := a.Client.Enter(ctx, api.StreamAttach, id, rank)
	if err != nil {
		return 0, err
	}
	defer st.Close()
	start := api.AttachStart{All: o.all}
	if a.Term.In && a.Term.Out {
		start.Width, start.Height = Size(a)
	}
	if err := st.Send(ctx, api.JSONFrame(api.FrameStart, start)); err != nil {
		return 0, Broken(ctx, goesOn)
	}
	if a.Term.In {
		a.Say("attached to job %s; leave it with Enter ~ . (it goes on), or end it as its program ends", id)
	}
	restore, err := TakeTerminal(ctx, a, st, start.Width > 0)
	if err != nil {
		return 0, err
	}
	defer restore()
	left := make(chan struct{})
	go func() { // ends with the program: reading standard input cannot be broken off
		end := func() error {
			if o.endInput {
				return st.SendInput(ctx, []byte{endOfTransmission})
			}
			return nil
		}
		if sendInput(ctx, a, st, keys{person: a.Term.In, fresh: true}, end) {
			close(left)
			st.Close()
		}
	}()
	code, err := Receive(ctx, a, st, goesOn)
	select {
	case <-left:
		return 0, errDetached
	default:
		return code, err
	}
}

const endOfTransmission = 4

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

// Interactive waits for a job that was submitted with --interactive and joins
// the user with its terminal. It ends with the job's exit code.
func Interactive(ctx context.Context, a *cli.App, id string) error {
	d, err := follow.UntilRun(ctx, a, id)
	if err != nil {
		return follow.Interrupted(a, err, id, d)
	}
	if !follow.HasLog(d) {
		return follow.End(a, d)
	}
	_, err = join(ctx, a, id, 0, joining{all: true, endInput: !a.Term.In})
	switch {
	case errors.Is(err, errDetached):
		sayDetached(a, id)
		return nil
	case client.IsCode(err, api.CodeConflict), endedWith(ctx, a, id, err): // it has ended before we came
		d, err = follow.Log(ctx, a, id, d)
	case err != nil:
		return err
	default:
		d, err = watch.Job(ctx, a, id, func(*api.JobDetail) bool { return false })
	}
	if err != nil {
		return follow.Interrupted(a, err, id, d)
	}
	return follow.End(a, d)
}

// endSoon is how long after its program a job ends at most, as a rule.
const endSoon = 3 * time.Second

// endedWith says whether a stream failed as the job's program had ended, which the controller
// learns a moment later.
func endedWith(ctx context.Context, a *cli.App, id string, err error) bool {
	if _, failed := errors.AsType[*api.StreamFailure](err); !failed {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, endSoon)
	defer cancel()
	_, err = watch.Job(ctx, a.Quiet(), id, func(*api.JobDetail) bool { return false })
	return err == nil
}
