// Package program runs programs of the site's as root: each in a session and a
// control group of its own, for a bounded time and with a bounded output. It says
// which programs may be run so, and how one ended. When and why is the caller's.
package program

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"gbatch/cgroups"
)

// Run is one run of a program.
type Run struct {
	Path  string
	Args  []string
	Env   []string // all of its environment
	Limit time.Duration
	Group *cgroups.Group // of its own; what it left there is the caller's to end
}

// Failure says that a program did not do its work.
type Failure struct {
	What string // as "exit code 3"
	Last string // the last line that it wrote; empty: none
}

func (f *Failure) Error() string {
	if f.Last == "" {
		return f.What
	}
	return f.What + ": " + f.Last
}

// Bounds of what is kept of a program.
const (
	maxOutput = 16 << 10
	maxLine   = 200
)

const (
	// lingering is how long the output of a program that has ended may stay open,
	// as by a daemon that it started.
	lingering   = 200 * time.Millisecond
	killTimeout = 10 * time.Second
)

// Do runs the program. The error is a Failure if the program failed or was late,
// or the cause of ctx's end. In both cases nothing of the program lives on.
func (r Run) Do(ctx context.Context) (out string, err error) {
	if err := Check(r.Path); err != nil {
		return "", &Failure{What: err.Error()}
	}
	var kept tail
	cmd := exec.Command(r.Path, r.Args...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = r.Env, "/", &kept, &kept, lingering
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := r.Group.Start(cmd); err != nil {
		return "", &Failure{What: "cannot be started: " + err.Error()}
	}
	ended := make(chan error, 1)
	// Ends with the program, which is waited for below.
	go func() { ended <- cmd.Wait() }()
	late := time.NewTimer(r.Limit)
	defer late.Stop()
	select {
	case err = <-ended:
		close(ended)
		if err = failure(err); err == nil {
			return kept.String(), nil
		}
	case <-late.C:
		err = &Failure{What: fmt.Sprintf("not over after %s, and ended", r.Limit)}
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if kill := r.Group.Kill(killTimeout); kill != nil { // what waits in the kernel is not waited for
		err = &Failure{What: errors.Join(err, kill).Error()}
	} else {
		<-ended
	}
	if f := (*Failure)(nil); errors.As(err, &f) {
		f.Last = lastLine(kept.String())
	}
	return kept.String(), err
}

// failure is what an end of a program means.
func failure(err error) error {
	var exit *exec.ExitError
	switch {
	case err == nil || errors.Is(err, exec.ErrWaitDelay):
		return nil
	case !errors.As(err, &exit):
		return &Failure{What: err.Error()}
	}
	if st, ok := exit.Sys().(syscall.WaitStatus); ok && st.Signaled() {
		return &Failure{What: "ended by signal " + unix.SignalName(st.Signal())}
	}
	return &Failure{What: fmt.Sprintf("exit code %d", exit.ExitCode())}
}

// lastLine is the last line of a text that is not empty, fit to be shown.
func lastLine(text string) string {
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	for i := len(lines) - 1; i >= 0; i-- {
		line := strings.TrimSpace(strings.Map(func(r rune) rune {
			switch {
			case r == '\t':
				return ' '
			case unicode.IsPrint(r) && r != unicode.ReplacementChar:
				return r
			}
			return -1
		}, lines[i]))
		if len(line) > maxLine {
			line = strings.ToValidUTF8(line[:maxLine], "") + "…"
		}
		if line != "" {
			return line
		}
	}
	return ""
}
