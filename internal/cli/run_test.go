package cli_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"gbatch/internal/cli"
	"gbatch/internal/cli/clitest"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/queue"
)

// probe is a command with everything that mains use.
type probe struct {
	cli.LongHelp
	cli.Connection
	cli.JSONFlag
	cli.IDsFlag
	List probeList `cmd:"" default:"withargs" help:"List."`
	Show probeShow `cmd:"" help:"Show."`
}

type probeList struct {
	Args     []string `arg:"" optional:""`
	NoHeader bool     `short:"h"`
	Sort     []string `short:"S"`
	Priority *int
	Name     string `short:"n"`
	Allow    *bool  `negatable:""`
}

func (p *probeList) Run(_ context.Context, a *cli.App) error {
	a.Say("list %v %v json=%v address=%s timeout=%v", p.Args, p.NoHeader, a.Output.JSON, a.Client.Address, a.Client.Timeout)
	if p.Sort != nil || p.Priority != nil {
		a.Say("sort %q priority %d name %q may %v", p.Sort, *p.Priority, p.Name, *p.Allow)
	}
	return nil
}

type probeShow struct{}

func (probeShow) Run(ctx context.Context, a *cli.App) error {
	return (&queue.Show{IDs: []string{"1"}}).Run(ctx, a)
}

func TestRun(t *testing.T) {
	tests := map[string]struct {
		args string
		code int
		want []string // in what was printed
	}{
		"default":     {"", 0, []string{"list [] false json=false address=/none timeout=30s"}},
		"flags":       {"-h 3 --json --timeout 2s", 0, []string{"list [3] true json=true address=/none timeout=2s"}},
		"dashes":      {"-S left,-gpus --priority -50 -n -x --allow 3 -h", 0, []string{`list [3] true`, `sort ["left" "-gpus"] priority -50 name "-x" may true`}},
		"dash-equals": {"--sort=-gpus -S left --priority=-50 --no-allow -n -", 0, []string{`sort ["-gpus" "left"] priority -50 name "-" may false`}},
		"no-value":    {"-n --json", 2, []string{`expected string value but got "--json"`}},
		"last":        {"3 -n", 2, []string{"expected string value"}},
		"version":     {"--version", 0, []string{"probe dev"}},
		"help":        {"--help", 0, []string{"Usage: probe", "Examples:\n  probe x  # does x", "Exit codes: 0 done"}},
		"unknown":     {"--bad", 2, []string{"probe: unknown flag --bad; see probe --help"}},
		"of-command":  {"show --bad", 2, []string{"probe: unknown flag --bad; see probe show --help"}},
		"two-forms":   {"--json --ids", 2, []string{"--json and --ids can't be used together"}},
		"unreachable": {"show", 5, []string{"probe: controller at unix:///none does not answer"}},
		"bad-address": {"--controller head:1", 2, []string{"probe: controller address \"head:1\": want unix:///path"}},
		"bad-token":   {"--token-file /none", 2, []string{"probe: read token: "}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GBATCH_CONTROLLER", "/none")
			b := clitest.Start(t, nil)
			p := cli.Program{Name: "probe", About: "About it.", Examples: []string{"probe x  # does x"}}
			code := b.App.Run(p, &probe{}, strings.Fields(tc.args))
			printed := b.Out.String() + b.Err.String()
			for _, want := range tc.want {
				if code != tc.code || !strings.Contains(printed, want) {
					t.Errorf("exit %d, printed %q; want %d and %q", code, printed, tc.code, want)
				}
			}
		})
	}
}

// stuck is a command that waits for a person.
type stuck struct {
	cli.Connection
	wait func(context.Context) error
}

func (s *stuck) Run(ctx context.Context, _ *cli.App) error { return s.wait(ctx) }

// TestHearsInTime: a command that does not hear signals yet does so from where it says that it
// has to, and not once more when its time has come.
func TestHearsInTime(t *testing.T) {
	if signal.Ignored(syscall.SIGTERM) {
		t.Skip("NOT TESTED: this test was begun so that it ignores SIGTERM")
	}
	for name, deaf := range map[string]time.Duration{"before": time.Hour, "about-then": time.Nanosecond} {
		t.Run(name, func(t *testing.T) {
			b := clitest.Start(t, nil)
			b.App.Deaf = deaf
			cmd := &stuck{wait: func(ctx context.Context) error {
				b.App.Hear()
				b.App.Hear()
				if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
					t.Error(err)
				}
				<-ctx.Done()
				return ctx.Err()
			}}
			if code := b.App.Run(cli.Program{Name: "stuck"}, cmd, nil); code != 143 || b.Err.Len() > 0 {
				t.Errorf("exit %d, want 143, said %q", code, b.Err.String())
			}
		})
	}
}

// TestInterrupted: a signal ends a command that heeds it and one that does not, with
// the exit code that stands for it, and neither says a word of Go's.
func TestInterrupted(t *testing.T) {
	heeds := func(ctx context.Context) error { <-ctx.Done(); return fmt.Errorf("read: %w", ctx.Err()) }
	for name, tc := range map[string]struct {
		sig  syscall.Signal
		wait func(context.Context) error
		want int
	}{
		"heeds":    {syscall.SIGINT, heeds, exit.Interrupted},
		"does-not": {syscall.SIGINT, func(context.Context) error { <-t.Context().Done(); return nil }, exit.Interrupted},
		"says-all": {syscall.SIGTERM, func(ctx context.Context) error { <-ctx.Done(); return &exit.Error{Code: exit.Interrupted} }, 143},
		"has-own":  {syscall.SIGTERM, func(ctx context.Context) error { <-ctx.Done(); return &exit.Error{Code: 7} }, 7},
		"ended":    {syscall.SIGTERM, heeds, 143},
		"hung-up":  {syscall.SIGHUP, heeds, 129},
		"quit":     {syscall.SIGQUIT, heeds, 131},
	} {
		t.Run(name, func(t *testing.T) {
			if signal.Ignored(tc.sig) {
				t.Skipf("NOT TESTED: this test was begun so that it ignores %v", tc.sig)
			}
			b := clitest.Start(t, nil)
			cmd := &stuck{wait: func(ctx context.Context) error {
				if err := syscall.Kill(os.Getpid(), tc.sig); err != nil {
					t.Error(err)
				}
				return tc.wait(ctx)
			}}
			if code := b.App.Run(cli.Program{Name: "stuck"}, cmd, nil); code != tc.want || b.Err.Len() > 0 {
				t.Errorf("exit %d, want %d, said %q", code, tc.want, b.Err.String())
			}
		})
	}
}
