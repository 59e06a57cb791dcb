package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/login"
	"gbatch/internal/cli/manpage"
	"gbatch/internal/client"
	"gbatch/internal/units"
)

// Version is the suite's version, set when a release is built.
var Version = "dev"

// Program describes a command to Main.
type Program struct {
	Name     string
	About    string
	Examples []string // "command  # what it does", three at least
	Retry    bool     // keep trying when the controller does not answer
	Failure  int      // exit code of all own failures; 0: those of package exit
	Codes    string   // the exit codes for the help; empty: those of package exit
	Sort     []string // what --sort takes, for completion
}

// Connection are the flags that say how to reach the controller.
type Connection struct {
	Controller string           `group:"connection" placeholder:"ADDRESS" help:"unix:///path, or https://host:port#pin as gadm join-string prints it (else GBATCH_CONTROLLER, client.yaml, the local controller)."`
	TokenFile  string           `group:"connection" type:"path" placeholder:"FILE" help:"File with your token (else GBATCH_TOKEN, GBATCH_TOKEN_FILE, gbatch/token in your configuration directory)."`
	Timeout    time.Duration    `group:"connection" default:"30s" help:"Give up on an answer after this long."`
	Version    kong.VersionFlag `help:"Print the version."`
}

// Help is the flag for commands where -h is free.
type Help struct {
	Help helpFlag `short:"h" help:"Print this help."`
}

// LongHelp is the flag for commands where -h means no header.
type LongHelp struct {
	Help helpFlag `help:"Print this help."`
}

type helpFlag bool

// BeforeReset prints the help before anything is checked.
func (helpFlag) BeforeReset(k *kong.Kong, ctx *kong.Context) error {
	if err := ctx.PrintUsage(false); err != nil {
		return err
	}
	k.Exit(exit.OK)
	return nil
}

// command is what mains give to Main: a kong struct that embeds Connection
// and what it needs of the other flags here, with a
// Run(context.Context, *App) error method on it or on its subcommands.
type command interface{ connection() *Connection }

func (c *Connection) connection() *Connection { return c }

// timeout is the default of Connection.Timeout.
const timeout = 30 * time.Second

// Main runs a command on the process's arguments and streams and exits. What is plain does one thing after
// the other, for which threads would cost more than they do.
func Main(p Program, cmd command) {
	if c, ok := plainly(cmd, os.Args[1:]); ok {
		a := Brief()
		a.Exit(a.runPlain(p, cmd, c))
	}
	a := New()
	runtime.SetDefaultGOMAXPROCS() // package alone had it be 1
	a.Exit(a.Run(p, cmd, os.Args[1:]))
}

// runPlain runs a command, or a part of it, that has its arguments.
func (a *App) runPlain(p Program, cmd command, c worded) int {
	a.Output = outputOf(cmd)
	return a.Do(p, cmd.connection(), func(ctx context.Context) error { return c.Run(ctx, a) })
}

// exited is the panic by which a flag such as --help ends the run.
type exited int

// Run is Main on an App that has all but its client and output form. It gives
// the exit code.
func (a *App) Run(p Program, cmd command, args []string) (code int) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case exited:
			code = int(v)
		default:
			panic(v)
		}
	}()
	if c, ok := plainly(cmd, args); ok {
		return a.runPlain(p, cmd, c)
	}
	parser, err := kong.New(cmd, kong.Name(p.Name), kong.Description(p.About), kong.NoDefaultHelp(),
		kong.Help(helpPrinter(p)), kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.Vars{"version": p.Name + " " + Version}, kong.Writers(a.Out, a.Err),
		kong.Exit(func(code int) { panic(exited(code)) }), groups, lengths)
	if err != nil {
		panic(fmt.Sprintf("flags of %s: %v", p.Name, err)) // a fault of this program
	}
	switch {
	case len(args) > 0 && args[0] == completeWord:
		(&completer{app: a, sort: p.Sort}).complete(parser, args[1:])
		return exit.OK
	case manpage.Asked(args):
		return a.Finish(p, writeMan(a.Out, p, parser.Model))
	}
	if c, ok := cmd.(interface{ AfterDashes([]string) }); ok {
		if i := slices.Index(args, "--"); i >= 0 {
			c.AfterDashes(args[i+1:])
			args = args[:i]
		}
	}
	if c, ok := cmd.(interface {
		OtherOptions([]string, []*kong.Flag) ([]string, error)
	}); ok {
		if args, err = c.OtherOptions(args, parser.Model.Flags); err != nil {
			return a.Finish(p, exit.Usagef("%w; see %s --help", err, p.Name))
		}
	}
	kctx, err := parser.Parse(joinDashed(parser.Model.Node, args))
	if err != nil {
		return a.Finish(p, exit.Usagef("%w; see %s --help", err, p.chosen(err)))
	}
	a.Output = outputOf(cmd)
	return a.Do(p, cmd.connection(), func(ctx context.Context) error {
		kctx.BindTo(ctx, (*context.Context)(nil))
		kctx.Bind(a)
		return kctx.Run()
	})
}

// Do does something with a client, until the user stops it, and gives the exit
// code.
func (a *App) Do(p Program, c *Connection, do func(context.Context) error) int {
	if err := a.connect(p, c); err != nil {
		return a.Finish(p, err)
	}
	ctx, stop := a.untilSignal()
	defer stop()
	code := a.Finish(p, a.interruptible(ctx, func(ctx context.Context) error {
		if err := login.Refresh(ctx, a.Client, a.Now()); err != nil {
			a.Say("%s: %v", p.Name, err)
		}
		return do(ctx)
	}))
	if by, ok := errors.AsType[*ended](context.Cause(ctx)); ok && code == exit.Interrupted {
		a.endedBy = by.signal
		return 128 + int(by.signal)
	}
	return code
}

// leave is how long a command has to end by itself once it was interrupted.
const leave = 2 * time.Second

// interruptible does something that may wait for what no context ends, such as a
// person at the terminal: interrupted, it is left alone, with the terminal as it was
// before.
func (a *App) interruptible(ctx context.Context, do func(context.Context) error) error {
	restore := a.terminalState()
	done := make(chan error, 1)
	go func() { done <- do(ctx) }() // awaited, unless the program ends with it
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(leave):
		restore()
		return context.Cause(ctx)
	}
}

// lengths reads flags that are a length of time as files have it.
var lengths = kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("length of time", &text); err != nil {
		return err
	}
	d, err := units.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("%q: %w", text, err)
	}
	target.SetInt(int64(d))
	return nil
}))

var groups = kong.ExplicitGroups([]kong.Group{
	{Key: "job", Title: "The job, in place of what its file says"},
	{Key: "container", Title: "The job's container, in docker's words"},
	{Key: "output", Title: "Output"},
	{Key: "connection", Title: "Connection"},
})

// connect makes the client. It connects to nothing yet.
func (a *App) connect(p Program, c *Connection) error {
	found, err := client.Find(client.Options{Address: c.Controller, TokenFile: c.TokenFile})
	if err != nil {
		return &exit.Error{Code: exit.Usage, Err: err}
	}
	found.UserAgent = p.Name + "/" + Version
	found.Timeout, found.Transport = c.Timeout, a.Wire
	var patience time.Duration
	switch {
	case p.Retry:
		patience = min(c.Timeout, 10*time.Second)
	case strings.Contains(found.Address, ","): // of several controllers another one leads in a moment
		patience = min(c.Timeout, 5*time.Second)
	}
	if patience > 0 {
		found.Retry = client.Retry{For: patience, Notice: func(err error) {
			a.Say("%v", err)
			a.Say("trying again for %v", patience)
		}}
	}
	a.Client = found
	if a.Reach = []string{"--controller", found.Address}; c.TokenFile != "" {
		a.Reach = append(a.Reach, "--token-file", c.TokenFile)
	}
	return nil
}

// Finish prints err, if there is something to say, and gives the exit code.
func (a *App) Finish(p Program, err error) int {
	if err == nil {
		return exit.OK
	}
	silent, ok := errors.AsType[*exit.Error](err)
	if ok && silent.Err == nil {
		return silent.Code
	}
	if errors.Is(err, context.Canceled) { // by the user, who knows
		return max(exit.Interrupted, p.Failure)
	}
	text := err.Error()
	if _, ok := errors.AsType[*problems](err); !ok {
		text = p.Name + ": " + text
	}
	a.Say("%s", text)
	return max(exit.Code(err), p.Failure)
}

// chosen is the program with the command of it that a bad command line names.
func (p *Program) chosen(bad error) string {
	name := ""
	if e, ok := errors.AsType[*kong.ParseError](bad); ok && e.Context != nil {
		for n := e.Context.Selected(); n != nil && n.Parent != nil; n = n.Parent {
			if n.Type == kong.CommandNode && n.Parent.DefaultCmd != n {
				name = " " + n.Name + name
			}
		}
	}
	return p.Name + name
}

// codes are the exit codes in a sentence.
func (p *Program) codes() string {
	if p.Codes != "" {
		return p.Codes
	}
	return "0 done, 1 failed, 2 wrong usage or job file, 3 not found, 4 denied, 5 controller\n" +
		"unreachable, 6 no node can ever hold the job, 130 interrupted."
}

// helpPrinter is kong's help with examples and exit codes after it.
func helpPrinter(p Program) kong.HelpPrinter {
	return func(o kong.HelpOptions, ctx *kong.Context) error {
		if err := kong.DefaultHelpPrinter(o, ctx); err != nil {
			return err
		}
		var b strings.Builder
		b.WriteString("\nExamples:\n")
		for _, e := range p.Examples {
			b.WriteString("  " + e + "\n")
		}
		b.WriteString("\nExit codes: " + p.codes() + " See also docs/commands.md.\n")
		_, err := io.WriteString(ctx.Stdout, b.String())
		return err
	}
}
