package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"gbatch/deploy"
	"gbatch/internal/client"
	"gbatch/internal/noded"
	"gbatch/internal/noded/config"
	"gbatch/internal/noded/identity"
	"gbatch/internal/noded/preflight"
)

type joinCmd struct {
	TokenFile string `placeholder:"FILE" help:"File with the token of gadm node-token create; - for standard input. None is needed beside the controller's socket, or once joined."`
	Cluster   int    `placeholder:"NUMBER" help:"For a new file: the cluster that the node belongs to. Default: 1."`
	Force     bool   `help:"Write a new file although there is one, which is kept as FILE.old."`
	Address   string `arg:"" help:"Where the controller is, as gadm join-string prints it there: https://HOST:PORT#sha256=…, or unix:///run/gbatch/gctld.sock beside it."`
}

func (j *joinCmd) Run(c *commands) error {
	if os.Geteuid() != 0 {
		return errors.New("gnoded join makes this machine a node and must be run as root")
	}
	if err := client.CheckAddress(j.Address); err != nil {
		return err
	}
	if strings.HasPrefix(j.Address, "/") {
		j.Address = "unix://" + j.Address
	}
	cfg, wrote, err := j.configuration(c)
	if err != nil {
		return err
	}
	if err := j.join(cfg); err != nil {
		return err
	}
	if wrote {
		if err := deploy.Write(c.Config, j.text(c)); err != nil {
			return err
		}
		fmt.Printf("%s was written: look through it, above all at storage.\n", c.Config)
	} else {
		fmt.Printf("%s is there and was not changed.\n", c.Config)
	}
	failed := preflight.Check(context.Background(), cfg, noded.Version, os.Stdout)
	if failed > 0 {
		return fmt.Errorf("checks that failed: %d; do what they say, look again by `gnoded check`, and start gnoded", failed)
	}
	start := "gnoded run"
	if c.Config != config.File {
		start += " --config " + c.Config
	} else if _, err := os.Stat("/run/systemd/system"); err == nil {
		start = "systemctl enable --now gnoded"
	}
	fmt.Printf("This machine is ready to be node %s. Start it:\n\n    %s\n", cfg.Name, start)
	return nil
}

// configuration is what the daemon will have, and whether it has to be written.
func (j *joinCmd) configuration(c *commands) (config.Config, bool, error) {
	c.Controller = "" // of the environment: the argument says it
	have, err := config.Read(c.Config)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil && !j.Force:
		return have, false, err
	case err == nil && !j.Force && have.Controller != j.Address:
		return have, false, fmt.Errorf("%s is there already and names the controller %s: change it with an editor, or replace it by --force, which keeps it as %s.old",
			c.Config, have.Controller, c.Config)
	case err == nil && !j.Force && (c.Name+c.StateDir+c.SimulateGPUs != "" || j.Cluster != 0):
		return have, false, deploy.AlreadyThere(c.Config)
	case !j.Force:
		have.SetDefaults()
		return have, false, have.Validate()
	}
	cfg, err := config.Parse([]byte(j.text(c)))
	if err != nil {
		return cfg, true, err
	}
	cfg.SetDefaults()
	return cfg, true, cfg.Validate()
}

// text is a new configuration file.
func (j *joinCmd) text(c *commands) string {
	text := deploy.Set(deploy.Gnoded, "controller", j.Address)
	text = deploy.Set(deploy.Set(text, "name", c.Name), "stateDir", c.StateDir)
	if j.Cluster != 0 {
		text = strings.Replace(text, "\nclusterId: 1\n", "\nclusterId: "+strconv.Itoa(j.Cluster)+"\n", 1)
	}
	if c.SimulateGPUs != "" {
		text = strings.Replace(text, "\n  # simulate: h100:8", "\n  simulate: "+strconv.Quote(c.SimulateGPUs), 1)
	}
	return text
}

// join gets the node its certificate, unless it has one.
func (j *joinCmd) join(cfg config.Config) error {
	joined, err := identity.Joined(cfg, noded.Version)
	if joined || err != nil {
		return err
	}
	if j.TokenFile == "" {
		return errors.New("this machine has not joined the controller: make a token there by `gadm node-token create --to join.token`, bring it here, and give it by --token-file")
	}
	if cfg.JoinTokenFile, err = j.token(); err != nil {
		return err
	}
	if j.TokenFile == "-" {
		defer os.Remove(cfg.JoinTokenFile)
	}
	return identity.Join(context.Background(), cfg, noded.Version)
}

// token is a file with the token.
func (j *joinCmd) token() (string, error) {
	if j.TokenFile != "-" {
		return j.TokenFile, nil
	}
	f, err := os.CreateTemp("", "join-token-") // 0600
	if err != nil {
		return "", err
	}
	_, err = io.Copy(f, io.LimitReader(os.Stdin, 64<<10))
	return f.Name(), errors.Join(err, f.Close())
}
