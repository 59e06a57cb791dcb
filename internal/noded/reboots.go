package noded

import (
	"context"
	"path"
	"path/filepath"
	"strings"
	"time"

	"gbatch/internal/noded/contact"
	"gbatch/internal/noded/program"
	"gbatch/internal/noded/reboot"
)

// openReboots begins to know whether the machine is to be rebooted.
func (a *Agent) openReboots(boot string) {
	a.health.reboots = reboot.Open(reboot.Options{
		File: filepath.Join(a.cfg.StateDir, "reboot.json"), Boot: boot, Empty: func() bool { return len(a.all()) == 0 && !a.leaving() },
		Program: a.reboot, Changed: func() { a.contact.Tell(contact.AtOnce) }, Log: a.log,
	})
}

// OrderReboot says which order to reboot stands; 0: none.
func (a *Agent) OrderReboot(seq uint64) { a.health.reboots.Ordered(seq) }

// reboot has the machine reboot. What its program has left running goes on: it may be
// what does it.
func (a *Agent) reboot(ctx context.Context) error {
	run := program.Run{Path: a.cfg.Reboot.Path, Env: a.ownEnvironment(), Limit: time.Duration(a.cfg.Reboot.Timeout)}
	var err error
	if run.Path == "" {
		if run.Path, run.Args, err = reboot.System(); err != nil {
			return err
		}
	}
	if run.Group, err = a.host.Cgroups.Find(path.Join(a.host.CgroupPrefix(), "reboot")); err != nil {
		return err
	}
	out, err := run.Do(ctx)
	if out = strings.TrimSpace(out); out != "" {
		a.log.Info("the program that reboots the machine says", "output", out)
	}
	return err
}
