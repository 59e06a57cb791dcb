package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"gbatch/deploy"
	"gbatch/internal/api"
	"gbatch/internal/ctld"
	"gbatch/internal/ctld/site"
)

type initCmd struct {
	Config    string `default:"/etc/gbatch/gctld.yaml" env:"GBATCH_GCTLD_CONFIG" help:"Configuration file." type:"path"`
	Dir       string `placeholder:"DIR" help:"For a new file: where the state is. Default: /var/lib/gbatch/ctld." type:"path"`
	Socket    string `placeholder:"PATH" help:"For a new file: the unix socket. Default: /run/gbatch/gctld.sock." type:"path"`
	Listen    string `placeholder:"HOST:PORT" help:"For a new file: TCP address for nodes and other machines. Default: 0.0.0.0:7077."`
	Advertise string `placeholder:"HOST:PORT" help:"For a new file: the address by which they reach it. Default: the host's name, with the port."`
	Join      string `placeholder:"FILE" type:"path" help:"Be one of several controllers: the file that gadm controllers add has written on the machine of the one that leads."`
	Force     bool   `help:"Write a new file although there is one, which is kept as FILE.old. Keys and state stay."`
}

func (c *initCmd) Run() error {
	given := c.Dir + c.Socket + c.Listen + c.Advertise
	_, err := os.Lstat(c.Config)
	switch {
	case err == nil && !c.Force && given != "":
		return deploy.AlreadyThere(c.Config)
	case err == nil && !c.Force:
		fmt.Printf("%s is there and was not changed.\n", c.Config)
	case err == nil || errors.Is(err, fs.ErrNotExist):
		if err := c.write(); err != nil {
			return err
		}
		fmt.Printf("%s was written: look through it, above all at admins, operators and projects.\n", c.Config)
	default:
		return err
	}
	cfg, err := site.Read(c.Config)
	if err != nil {
		return err
	}
	if c.Join != "" {
		return c.join(cfg)
	}
	address, err := ctld.Init(cfg)
	if err != nil {
		return fmt.Errorf("make the controller's keys: %w", err)
	}
	c.next(cfg, address)
	return nil
}

// write puts the commented file there, with what was asked for.
func (c *initCmd) write() error {
	text := deploy.Set(deploy.Gctld, "listen", cmp.Or(c.Listen, "0.0.0.0:7077"))
	for key, value := range map[string]string{"dir": c.Dir, "socket": c.Socket, "advertise": c.Advertise} {
		text = deploy.Set(text, key, value)
	}
	if c.Join != "" {
		f, err := readJoinFile(c.Join)
		if err != nil {
			return err
		}
		patience := ""
		if f.PatienceS > 0 {
			patience = fmt.Sprintf(", patience: %d seconds", f.PatienceS)
		}
		text += fmt.Sprintf("\nreplica: {name: %s, listen: %q%s}\n", f.Name, f.Address, patience)
	}
	return deploy.Write(c.Config, text)
}

func readJoinFile(path string) (*api.JoinFile, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f := &api.JoinFile{}
	if err := json.Unmarshal(text, f); err != nil || f.Name == "" || len(f.Keys) == 0 {
		return nil, fmt.Errorf("%s is not what `gadm controllers add` writes", path)
	}
	return f, nil
}

// join makes the directory of one of several controllers, which gets its records from the others.
func (c *initCmd) join(cfg site.Config) error {
	f, err := readJoinFile(c.Join)
	if err != nil {
		return err
	}
	if err := ctld.InitMember(cfg, f); err != nil {
		return fmt.Errorf("join the other controllers: %w", err)
	}
	fmt.Printf("This machine can be controller %s, which the others reach at %s. Make admins, projects and policy in %s what they are there, remove %s, and start it:\n\n    gctld run --config %s\n\n`gadm controllers` shows when it takes part.\n",
		f.Name, f.Address, c.Config, c.Join, c.Config)
	return nil
}

// next says what to do now.
func (c *initCmd) next(cfg site.Config, address string) {
	file := ""
	if c.Config != "/etc/gbatch/gctld.yaml" {
		file = " --config " + c.Config
	}
	fmt.Printf("State and keys are in %s. Start the controller:\n\n", cfg.Dir)
	if unit("gctld") && file == "" {
		fmt.Println("    systemctl enable --now gctld")
	} else {
		fmt.Printf("    gctld run%s\n", file)
	}
	fmt.Printf("\nMake this machine a node, too:\n\n    gnoded join unix://%s\n", cfg.SocketPath())
	if address != "" {
		fmt.Printf("\nMake another machine a node. Here, then there:\n\n    gadm node-token create --to join.token\n    gnoded join '%s' --token-file join.token\n", address)
	}
	if strings.HasPrefix(cfg.Listen, "127.") || strings.HasPrefix(cfg.Listen, "localhost:") || strings.HasPrefix(cfg.Listen, "[::1]") {
		fmt.Printf("\nOther machines do not reach it while it listens at %s: change listen in %s.\n", cfg.Listen, c.Config)
	}
}

// unit says whether systemd runs here and has the unit.
func unit(name string) bool {
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		return false
	}
	for _, dir := range []string{"/usr/lib/systemd/system/", "/etc/systemd/system/"} {
		if _, err := os.Stat(dir + name + ".service"); err == nil {
			return true
		}
	}
	return false
}
