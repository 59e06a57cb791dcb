package slurm

import (
	"context"
	"fmt"
	"strings"
	"time"

	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/slurm/getopt"
	"gbatch/internal/client"
)

// control is a run of scontrol.
type control struct {
	app      *cli.App
	oneLine  bool
	details  bool
	json     bool
	quiet    bool
	clusters clusters
}

// notPlayedBy are scontrol's commands that do nothing here, with what to use.
var notPlayedBy = map[string]string{
	"abort": "stop gctld by its service", "shutdown": "stop gctld by its service", "takeover": "use gadm controllers transfer",
	"cluster": "choose the controller with GBATCH_CONTROLLER", "completing": "use squeue -t COMPLETING", "create": "use gadm reserve", "delete": "use gadm unreserve",
	"details": "use -d", "errnumstr": "errors are sentences here", "exit": "give one command", "fsdampeningfactor": "use gadm policy", "help": "see docs/slurm.md",
	"listpids": "use gexec JOB -- ps", "notify": "use gexec JOB", "oneliner": "use -o", "pidinfo": "use gexec JOB -- ps", "quit": "give one command", "setdebug": "use the log level in gctld.yaml",
	"setdebugflags": "use the log level in gctld.yaml", "schedloglevel": "use gadm diag", "top": "use gqueue update --priority", "wait_job": "use gqueue wait",
	"token": "use gadm token create", "verbose": "use -v",
}

// scontrol shows and changes jobs, nodes and partitions.
func scontrol(ctx context.Context, a *cli.App, args []string) error {
	c := control{app: a}
	rest, err := getopt.Parse(args, []getopt.Option{
		getopt.Bool(&c.oneLine, "-o", "--oneliner"), getopt.Bool(&c.details, "-d", "--details"), getopt.Bool(&c.json, "--json"), getopt.Bool(&c.quiet, "-Q", "--quiet"),
		c.clusters.option(), getopt.Ignored("-a", "--all", "--hide", "-v", "--verbose", "--local", "--federation", "--sibling", "-F", "--future"),
		getopt.Instead("use --json", "--yaml"), getopt.Instead("the controller knows who you are", "-u", "--uid"),
	})
	if err != nil {
		return err
	}
	if err := c.clusters.check(); err != nil {
		return err
	}
	if len(rest) == 0 {
		return exit.Usagef("scontrol wants a command here: show, update, hold, uhold, release, requeue, requeuehold, suspend, resume, reboot, reconfigure or ping")
	}
	word, rest := strings.ToLower(rest[0]), rest[1:]
	if instead, ok := notPlayedBy[word]; ok {
		return exit.Usagef("scontrol %s is not played here: %s", word, instead)
	}
	switch word {
	case "show":
		return c.show(ctx, rest)
	case "update":
		return c.update(ctx, rest)
	case "hold", "uhold", "release", "requeue", "requeuehold", "resume":
		return c.act(ctx, word, word, rest)
	case "suspend":
		return c.act(ctx, word, "pause", rest)
	case "reboot", "cancel_reboot":
		return c.reboot(ctx, word, rest)
	case "write":
		return c.write(ctx, rest)
	case "reconfigure":
		_, err := a.Client.ReloadPolicy(ctx)
		return err
	case "ping":
		return c.ping(ctx)
	case "version":
		fmt.Fprintln(a.Out, "slurm "+version)
		return nil
	}
	return exit.Usagef("invalid keyword: %s", word)
}

// ping says whether the controller answers.
func (c *control) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err := c.app.Client.Status(ctx)
	state := pick(client.IsUnavailable(err), "DOWN", "UP")
	if c.json {
		return writeJSON(c.app, "pings", []string{state}, func(s *string) object {
			return object{"hostname": c.app.Client.Address, "ping": *s, "mode": "primary", "status": 0}
		})
	}
	fmt.Fprintf(c.app.Out, "Slurmctld(primary) at %s is %s\n", strings.TrimPrefix(c.app.Client.Address, "unix://"), state)
	if state == "DOWN" {
		return &exit.Error{Code: exit.Failure}
	}
	return nil
}

// records prints what was found, each with an empty line after it or on one line.
func (c *control) records(texts []string) error {
	for _, text := range texts {
		if c.oneLine {
			var parts []string
			for line := range strings.Lines(text) {
				parts = append(parts, strings.TrimSpace(line))
			}
			text = strings.TrimSpace(strings.Join(parts, " "))
		}
		if _, err := fmt.Fprintln(c.app.Out, text); err != nil {
			return err
		}
	}
	return nil
}
