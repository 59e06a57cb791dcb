// gctld is the controller: it keeps the queue, decides what starts where, and
// answers users and nodes.
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
	"path/filepath"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/manpage"
	"gbatch/internal/client"
	"gbatch/internal/ctld"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/site"
	"gbatch/internal/garbage"
)

type commands struct {
	LogLevel slog.Level       `default:"info" help:"Least level of what is logged: debug, info, warn, error."`
	Version  kong.VersionFlag `help:"Print the version."`

	Run         runCmd     `cmd:"" default:"withargs" help:"Run the controller."`
	Dev         devCmd     `cmd:"" help:"Run a controller and one node on this machine, to try things out."`
	CheckConfig checkCmd   `cmd:"" help:"Check a configuration file."`
	Init        initCmd    `cmd:"" help:"Write a configuration file and make the controller's keys, unless they are there, and say what to do next."`
	Backup      backupCmd  `cmd:"" help:"Write a backup of the controller that runs here into a file."`
	Restore     restoreCmd `cmd:"" help:"Make the controller's directory, which must be empty, out of a backup."`
	AcceptLoss  acceptCmd  `cmd:"" help:"Go on without what the controller's directory has lost, as its refused start names it."`
	Fsck        fsckCmd    `cmd:"" help:"Look at every record of the controller's directory while no controller runs there."`
	Sim         simCmd     `cmd:"" help:"Replay a workload through the scheduler and report how it fared."`
}

type runCmd struct {
	Config string `default:"/etc/gbatch/gctld.yaml" env:"GBATCH_GCTLD_CONFIG" help:"Configuration file." type:"path"`
}

func (c *runCmd) Run(log *slog.Logger) error {
	garbage.Sparingly()
	source := func() (site.Config, error) { return site.Read(c.Config) }
	if cfg, err := source(); err == nil && cfg.Replica != nil {
		return runMember(source, log)
	}
	s, err := ctld.Open(source, log)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w; make one by `gctld init`, or try `gctld dev`", err)
	}
	if err != nil {
		return err
	}
	log.Info("gctld answers", "addresses", strings.Join(s.Addresses(), " "))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	go s.ReloadOn(ctx, hangup()) // ends with ctx
	return errors.Join(s.Run(ctx), s.Close())
}

// runMember runs one of several controllers.
func runMember(source func() (site.Config, error), log *slog.Logger) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	m, err := ctld.OpenMember(source, hangup(), log)
	if err != nil {
		return err
	}
	return errors.Join(m.Run(ctx), m.Close())
}

type devCmd struct {
	Dir          string `help:"Directory that holds everything. Default: gbatch/dev in your state directory." type:"path"`
	Listen       string `help:"TCP address on loopback, beside the unix socket. Default: as in gctld.yaml, at first 127.0.0.1:7077."`
	Gnoded       string `help:"The gnoded to start. Default: the one beside this program." type:"path"`
	SimulateGPUs string `name:"simulate-gpus" placeholder:"MODEL:N" help:"Let the node pretend to have GPUs, as h100:8."`
}

func (c *devCmd) Run(log *slog.Logger) error {
	if os.Geteuid() != 0 {
		return errors.New("gctld dev runs containers and must be started as root")
	}
	d := ctld.Dev{Dir: c.Dir, Listen: c.Listen, Gnoded: c.Gnoded, SimulateGPUs: c.SimulateGPUs, Log: log, Reload: hangup()}
	d.Dir = cmp.Or(d.Dir, client.DevDir())
	if d.Gnoded == "" {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		d.Gnoded = filepath.Join(filepath.Dir(self), "gnoded")
	}
	if _, err := os.Stat(d.Gnoded); err != nil {
		return fmt.Errorf("find gnoded: %w (build it beside gctld with `make build`, or use --gnoded)", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	err := d.Run(ctx, func(addresses []string) { greet(d.Dir, addresses) })
	fmt.Fprintln(os.Stderr, "gctld dev has stopped. Jobs that were running go on; start it again and it finds them.")
	return err
}

// hangup is the signals that ask for the configuration to be read again.
func hangup() <-chan os.Signal {
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, syscall.SIGHUP)
	return ch
}

// greet says what to type next.
func greet(dir string, addresses []string) {
	bin := ""
	if self, err := os.Executable(); err == nil {
		bin = filepath.Dir(self) + "/"
	}
	env := ""
	if dir != client.DevDir() {
		env = "export GBATCH_CONTROLLER=" + addresses[0] + "\n  "
	}
	fmt.Fprintf(os.Stderr, `gbatch runs in %s. In another terminal:
  %s%sginfo                      what there is
  %sgsubmit --follow JOB.json  run a job and see its output
  %sgqueue                     what waits and runs
Ctrl-C stops the controller and the node.
`, dir, env, bin, bin, bin)
}

type checkCmd struct {
	File string `arg:"" type:"path" help:"Configuration file."`
}

func (c *checkCmd) Run() error {
	cfg, err := site.Read(c.File)
	if err != nil {
		return err
	}
	for _, text := range access.NewPeople(slog.New(slog.DiscardHandler)).Strangers(cfg) {
		fmt.Println("note: " + text)
	}
	fmt.Println(c.File + " is fine")
	return nil
}

func main() {
	var c commands
	parser := kong.Must(&c, kong.Name("gctld"), kong.Description(about), kong.ShortUsageOnError(),
		kong.Vars{"version": ctld.Version}, kong.Exit(func(code int) { os.Exit(exit.Daemon(code)) }))
	if manpage.Asked(os.Args[1:]) {
		parser.FatalIfErrorf(manpage.Write(os.Stdout, page, parser.Model))
		return
	}
	k, err := parser.Parse(os.Args[1:])
	parser.FatalIfErrorf(err)
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: c.LogLevel}))
	k.FatalIfErrorf(k.Run(log))
}
