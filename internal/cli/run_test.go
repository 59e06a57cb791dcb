package cli

import (
	"context"
	"strings"
	"testing"
)

// probe is a command with everything that mains use.
type probe struct {
	LongHelp
	Connection
	JSONFlag
	IDsFlag
	List probeList `cmd:"" default:"withargs" help:"List."`
	Show probeShow `cmd:"" help:"Show."`
}

type probeList struct {
	Args     []string `arg:"" optional:""`
	NoHeader bool     `short:"h"`
}

func (p *probeList) Run(_ context.Context, a *App) error {
	a.say("list %v %v json=%v address=%s timeout=%v", p.Args, p.NoHeader, a.Output.JSON, a.Client.Address, a.Client.Timeout)
	return nil
}

type probeShow struct{}

func (probeShow) Run(ctx context.Context, a *App) error { return a.Show(ctx, []string{"1"}, "") }

func TestRun(t *testing.T) {
	tests := map[string]struct {
		args string
		code int
		want []string // in what was printed
	}{
		"default":     {"", 0, []string{"list [] false json=false address=/none timeout=30s"}},
		"flags":       {"-h 3 --json --timeout 2s", 0, []string{"list [3] true json=true address=/none timeout=2s"}},
		"version":     {"--version", 0, []string{"probe dev"}},
		"help":        {"--help", 0, []string{"Usage: probe", "Examples:\n  probe x  # does x", "Exit codes: 0 done"}},
		"unknown":     {"--bad", 2, []string{"probe: unknown flag --bad; see probe --help"}},
		"two-forms":   {"--json --ids", 2, []string{"--json and --ids can't be used together"}},
		"unreachable": {"show", 5, []string{"probe: controller at unix:///none does not answer"}},
		"bad-address": {"--controller head:1", 2, []string{"probe: controller address \"head:1\": want unix:///path"}},
		"bad-token":   {"--token-file /none", 2, []string{"probe: read token: "}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GBATCH_CONTROLLER", "/none")
			b := start(t, nil)
			p := Program{Name: "probe", About: "About it.", Examples: []string{"probe x  # does x"}}
			code := run(p, &probe{}, strings.Fields(tc.args), b.app)
			printed := b.out.String() + b.err.String()
			for _, want := range tc.want {
				if code != tc.code || !strings.Contains(printed, want) {
					t.Errorf("exit %d, printed %q; want %d and %q", code, printed, tc.code, want)
				}
			}
		})
	}
}
