// gnoded is the node daemon: it runs the containers that the controller gives
// this machine.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/manpage"
	"gbatch/internal/gpu"
	"gbatch/internal/noded"
	"gbatch/internal/noded/config"
	"gbatch/internal/noded/preflight"
)

// A shim and a container's first process are this program too. Package oci,
// which noded imports, takes them before main is reached.

type commands struct {
	Config       string     `short:"c" default:"${config}" env:"GBATCH_GNODED_CONFIG" help:"Configuration file." type:"path"`
	Name         string     `env:"GBATCH_NODE_NAME" help:"Name of the node. Wins over the file."`
	StateDir     string     `env:"GBATCH_NODE_STATE_DIR" help:"State directory. Wins over the file." type:"path"`
	Controller   string     `env:"GBATCH_CONTROLLER" help:"Address of the controller. Wins over the file."`
	JoinToken    string     `name:"join-token-file" env:"GBATCH_JOIN_TOKEN_FILE" help:"File with the token to join by. Wins over the file." type:"path"`
	SimulateGPUs string     `name:"simulate-gpus" env:"GBATCH_SIMULATE_GPUS" placeholder:"MODEL:N" help:"Pretend to have GPUs, as h100:8. Wins over the file."`
	LogLevel     slog.Level `default:"info" env:"GBATCH_LOG_LEVEL" help:"Least level of what is logged: debug, info, warn, error."`

	Version kong.VersionFlag `help:"Print the version."`

	Run         runCmd    `cmd:"" default:"1" help:"Run the node daemon."`
	Join        joinCmd   `cmd:"" help:"Make this machine a node: join the controller, write the configuration file, and check the machine."`
	Check       checkCmd  `cmd:"" help:"Say what this machine lacks to be a node, and what to do about it."`
	CheckConfig configCmd `cmd:"" help:"Check a configuration file."`
}

// config is the file with the flags laid over it. Without a file at the
// default place, the flags must do.
func (c *commands) config() (config.Config, error) {
	cfg, err := config.Read(c.Config)
	if errors.Is(err, fs.ErrNotExist) && c.Config == config.File && c.Controller != "" {
		err = nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return cfg, fmt.Errorf("%w; make one by `gnoded join ADDRESS`, name one with --config, or give --controller", err)
	}
	if err != nil {
		return cfg, err
	}
	cfg.Name = cmp.Or(c.Name, cfg.Name)
	cfg.StateDir = cmp.Or(c.StateDir, cfg.StateDir)
	cfg.Controller = cmp.Or(c.Controller, cfg.Controller)
	cfg.JoinTokenFile = cmp.Or(c.JoinToken, cfg.JoinTokenFile)
	cfg.GPU.Simulate = cmp.Or(c.SimulateGPUs, cfg.GPU.Simulate)
	cfg.SetDefaults()
	return cfg, cfg.Validate()
}

type runCmd struct{}

func (runCmd) Run(c *commands, log *slog.Logger) error {
	cfg, err := c.config()
	if err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return errors.New("gnoded runs containers and must be started as root")
	}
	// Before Open, so that a daemon that is told to end while it starts takes
	// back what it has made.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	a, err := noded.Open(cfg, noded.Options{Log: log, Version: noded.Version})
	if err != nil {
		return err
	}
	err = a.Run(ctx)
	if n := a.Running(); n > 0 {
		log.Info("node daemon stops; its containers go on and are taken over by the next one", "running", n)
	} else {
		log.Info("node daemon stops; nothing was running")
	}
	return errors.Join(err, a.Close())
}

type checkCmd struct{}

func (checkCmd) Run(c *commands) error {
	cfg, err := c.config()
	if err != nil {
		return err
	}
	failed := preflight.Check(context.Background(), cfg, noded.Version, os.Stdout)
	if failed > 0 {
		return fmt.Errorf("checks that failed: %d; do what they say and check again", failed)
	}
	return nil
}

type configCmd struct {
	File string `arg:"" type:"path" help:"Configuration file."`
}

func (f *configCmd) Run() error {
	if _, err := config.Load(f.File); err != nil {
		return err
	}
	fmt.Println(f.File + " is fine")
	return nil
}

func main() {
	gpu.RunHook() // a container's hook is this program as well
	var c commands
	parser := kong.Must(&c, kong.Name("gnoded"), kong.Description(about), kong.ShortUsageOnError(),
		kong.Vars{"version": noded.Version, "config": config.File}, kong.Exit(func(code int) { os.Exit(exit.Daemon(code)) }))
	if manpage.Asked(os.Args[1:]) {
		parser.FatalIfErrorf(manpage.Write(os.Stdout, page, parser.Model))
		return
	}
	k, err := parser.Parse(os.Args[1:])
	parser.FatalIfErrorf(err)
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: c.LogLevel}))
	k.FatalIfErrorf(k.Run(&c, log))
}
