// Package cli is what all commands share: App, which is one run of a command
// and all that it may touch; the flags for the connection and the output; the
// exit codes; completion and man pages, which are made of the flags. What a
// command does is in the package of its name below this one, as a struct of its
// flags with a Run method; Slurm's commands are in slurm.
//
// The packages below reach the process through App: its streams, its clock, its
// environment and its terminal's size, which tests replace, so that they see the
// bytes a user would. There are three exceptions. Job files, secrets and scripts
// are read from the file system by name, and tokens are written there; timers that wait for a change or for an end
// are the process's own; and client.Find looks for the controller's address and
// the user's token in the environment and in files. Text from the controller is
// shown only with its control characters escaped; a job's log is the exception,
// it goes to Out byte by byte.
package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"gbatch/internal/api"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/human"
	"gbatch/internal/cli/table"
	"gbatch/internal/client"
)

// App is one run of a command: all that it may touch. The process's clock,
// streams and environment are reached through it alone.
type App struct {
	Out, Err io.Writer
	In       io.Reader
	Client   *client.Client
	Wire     http.RoundTripper // in place of the connection to the controller's address; nil: that
	Reach    []string          // flags by which other commands, run elsewhere, reach the same controller
	Now      func() time.Time
	Sleep    func(context.Context, time.Duration) error
	Environ  func() []string
	Term     Terminal
	Measure  func() Terminal // again, for what goes on: a window may change its size; nil: never
	Output   Output
	Place    func() (dir, host string) // where it is run, as far as that is known
	Within   string                    // the job in whose container it is run; empty: in none
	Deaf     time.Duration             // after its begin, in which it does not hear signals; 0: it always does

	endedBy syscall.Signal // that told it to end; 0: none
	hearing *hearing       // how it is told to; nil: it is not
}

// New is a run on the process's own streams, clock and environment. Its client
// is still missing.
func New() *App {
	return &App{
		Out: os.Stdout, Err: os.Stderr, In: os.Stdin,
		Now: time.Now, Sleep: client.Sleep, Environ: os.Environ, Term: detectTerminal(), Measure: detectTerminal, Place: place,
	}
}

// Brief is New for a command that is mostly over at once.
func Brief() *App {
	a := New()
	a.Deaf = deaf
	return a
}

// place asks the kernel for the directory: $PWD may go by links that other
// machines do not have.
func place() (dir, host string) {
	dir, _ = syscall.Getwd()
	host, _ = os.Hostname()
	return dir, host
}

// Quiet is the same run, but that says nothing to its user.
func (a *App) Quiet() *App {
	q := *a
	q.Err, q.Term = io.Discard, Terminal{}
	return &q
}

// Env looks a variable up.
func (a *App) Env(name string) (string, bool) {
	for _, kv := range a.Environ() {
		if n, value, _ := strings.Cut(kv, "="); n == name {
			return value, true
		}
	}
	return "", false
}

// View is how a list is looked at by whoever ran the command.
func (a *App) View() table.View {
	return table.View{Now: a.Now(), Relative: !a.Output.ISO, Width: a.Term.Width, Color: a.Term.Color}
}

// Moment is a time in the form that the user chose.
func (a *App) Moment(t time.Time) string {
	v := a.View()
	return string(v.Moment(nil, t))
}

// Users are the users whom the flags --user and --me name. Who the caller is, the
// controller knows.
func (a *App) Users(ctx context.Context, users []string, me bool) ([]string, error) {
	if !me {
		return users, nil
	}
	status, err := a.Client.Status(ctx)
	if err != nil {
		return nil, err
	}
	return append(users, status.You), nil
}

// Unknown are those of the users of whom the site has never heard. It is for users of
// whom there is nothing to show.
func (a *App) Unknown(ctx context.Context, users []string) (names []string) {
	for _, name := range users {
		l, err := a.Client.Jobs(ctx, client.JobFilter{User: name, All: true, Limit: 1})
		if err == nil && l.NoUser {
			names = append(names, name)
		}
	}
	return names
}

// SayUnknown says it of each of them, and whether there is one.
func (a *App) SayUnknown(names []string) (any bool) {
	for _, name := range names {
		a.Say("this site knows no user %s: it has no account, token or job here", human.Clean(name))
	}
	return len(names) > 0
}

// Terminal says what the standard streams are.
type Terminal struct {
	In, Out, Err bool // a person is there
	Width        int  // columns of Out; 0: not limited
	Height       int  // lines of Out; 0: not limited
	ErrWidth     int  // columns of Err; 0: not limited
	Color        bool // Out takes colours
	Dumb         bool // takes no escape sequences
}

// detectTerminal looks at the process's standard streams and at NO_COLOR.
func detectTerminal() Terminal {
	kind, known := os.LookupEnv("TERM")
	t := Terminal{
		Dumb: !known || kind == "" || kind == "dumb",
		In:   term.IsTerminal(int(os.Stdin.Fd())),
		Out:  term.IsTerminal(int(os.Stdout.Fd())),
		Err:  term.IsTerminal(int(os.Stderr.Fd())),
	}
	if t.Out {
		if width, height, err := term.GetSize(int(os.Stdout.Fd())); err == nil {
			t.Width, t.Height = max(width, 0), max(height, 0)
		}
		t.Color = os.Getenv("NO_COLOR") == "" && !t.Dumb
	}
	if t.Err {
		if width, _, err := term.GetSize(int(os.Stderr.Fd())); err == nil {
			t.ErrWidth = max(width, 0)
		}
	}
	return t
}

// Tell writes one line to Out, as Say does to Err.
func (a *App) Tell(format string, args ...any) error {
	_, err := fmt.Fprintln(a.Out, human.Fold(human.CleanLines(fmt.Sprintf(format, args...)), a.Term.Width))
	return err
}

// Say writes one line for the user to Err, in several where the terminal is narrower. The text may come from anywhere.
func (a *App) Say(format string, args ...any) {
	fmt.Fprintln(a.Err, human.Fold(human.CleanLines(fmt.Sprintf(format, args...)), a.Term.ErrWidth))
}

// Ask puts a question to the user at the terminal; anything but yes is no.
func (a *App) Ask(question string) (bool, error) {
	fmt.Fprint(a.Err, human.Clean(question)+" [y/N] ")
	line, err := bufio.NewReader(a.In).ReadString('\n')
	if err != nil && err != io.EOF {
		return false, fmt.Errorf("read the answer: %w", err)
	}
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes", nil
}

// AskHidden puts a question to the user at the terminal, which does not show the
// answer; nil: there is no terminal.
func (a *App) AskHidden() func(question string) (string, error) {
	in, ok := a.In.(*os.File)
	if !ok || !a.Term.In || !a.Term.Err {
		return nil
	}
	return func(question string) (string, error) {
		a.Hear() // the terminal is to show again what is typed
		fmt.Fprint(a.Err, human.Clean(question))
		answer, err := term.ReadPassword(int(in.Fd()))
		fmt.Fprintln(a.Err)
		if err != nil {
			return "", fmt.Errorf("read the answer: %w", err)
		}
		return string(answer), nil
	}
}

// terminalState gives what puts the terminal back as it is now.
func (a *App) terminalState() (restore func()) {
	in, ok := a.In.(*os.File)
	if !ok || !a.Term.In {
		return func() {}
	}
	state, err := term.GetState(int(in.Fd()))
	if err != nil {
		return func() {}
	}
	return func() { _ = term.Restore(int(in.Fd()), state) } // the program ends now
}

// ClearStatus removes a status line that is drawn again and again.
func (a *App) ClearStatus() {
	if a.Term.Err && !a.Term.Dumb {
		fmt.Fprint(a.Err, "\r\x1b[K")
	}
}

// Each does something to each job, with an empty line between, and goes on
// with the others when the controller refuses one.
func (a *App) Each(ids []string, do func(id string) error) error {
	var failed error
	for i, id := range ids {
		if i > 0 && !a.Output.JSON && !a.Output.IDs {
			fmt.Fprintln(a.Out)
		}
		err := do(id)
		refusal, ok := errors.AsType[*api.Error](err)
		if err != nil && (!ok || len(ids) == 1 || client.IsUnavailable(err)) {
			return err
		}
		if err != nil {
			a.Say("%s: %v", id, refusal)
			failed = &exit.Error{Code: exit.Code(err)}
		}
	}
	return failed
}
