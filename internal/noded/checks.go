package noded

import (
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"gbatch/internal/noded/checks"
	"gbatch/internal/noded/config"
	"gbatch/internal/noded/contact"
	"gbatch/internal/noded/hooks"
	"gbatch/internal/noded/program"
	"gbatch/internal/noded/rank"
)

// openChecks begins to know whether the machine is fit for jobs.
func (a *Agent) openChecks(boot string) (err error) {
	a.health.changed = func() { a.contact.Tell(contact.AtOnce) }
	clock := &clock{ask: a.controller.Date, remote: strings.HasPrefix(a.cfg.Controller, "https:")}
	a.health.machine, err = checks.Open(checks.Options{
		Config: &a.cfg, File: filepath.Join(a.cfg.StateDir, "health.json"), Boot: boot, Log: a.log,
		Machine: checks.Machine{Root: os.DirFS("/"), Ask: checks.Ask, Skew: clock.skew},
		Run:     a.runHealth, GPUs: a.unfitGPUs, Changed: func() { a.contact.Tell(contact.AtOnce) },
	})
	return err
}

// unfitGPUs are those that take no jobs, by UUID.
func (a *Agent) unfitGPUs() (list []string) {
	for _, g := range a.devices.Inventory().GPUs {
		if g.Unhealthy != "" {
			list = append(list, g.UUID)
		}
	}
	return list
}

// runHealth runs one of the site's health programs. What it has left running is
// ended: it has no job to serve.
func (a *Agent) runHealth(ctx context.Context, p config.Program) error {
	group, err := a.host.Cgroups.Find(path.Join(a.host.CgroupPrefix(), healthGroup))
	if err != nil {
		return err
	}
	began := time.Now()
	out, err := program.Run{Path: p.Path, Env: a.ownEnvironment(), Limit: time.Duration(p.Timeout), Group: group}.Do(ctx)
	left := errors.Join(group.Kill(killTimeout), group.Remove()) // also when the daemon stops meanwhile
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	err = errors.Join(err, left)
	result := "ok"
	if err != nil {
		result = "failed"
		a.log.Error("health program failed", "program", p.Path, "error", err, "output", strings.TrimSpace(out))
	}
	a.counters.Ran("health", result, time.Since(began))
	return err
}

// ownEnvironment is that of programs that are about the node and no job.
func (a *Agent) ownEnvironment() []string {
	return append(hooks.Environment(), "GBATCH_NODE="+a.cfg.Name, "SLURMD_NODENAME="+a.cfg.Name)
}

const (
	healthGroup = "health"
	killTimeout = 10 * time.Second
)

// Fit says why nothing new may begin on the machine; empty: it may. An order may have
// been sent before the controller knew.
func (h *health) Fit() string {
	if why := h.reboots.UnderWay(); why != "" {
		return why
	}
	return strings.Join(h.machine.Reasons(), "; ")
}

var _ rank.Health = (*health)(nil)

// clock knows how far the machine's clock is from the controller's.
type clock struct {
	ask    func(context.Context) (time.Time, error)
	remote bool // the controller is on another machine

	mu    sync.Mutex
	asked time.Time
	last  time.Duration
	told  bool
}

const (
	clockEvery = time.Minute     // how often is asked
	clockTrip  = 2 * time.Second // an answer that takes longer tells nothing
)

// skew asks the controller, now and then: its answer is exact to a second.
func (c *clock) skew(ctx context.Context) (time.Duration, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.remote {
		return 0, false
	}
	if !c.asked.IsZero() && time.Since(c.asked) < clockEvery {
		return c.last, c.told
	}
	ctx, cancel := context.WithTimeout(ctx, clockTrip)
	defer cancel()
	c.asked = time.Now()
	date, err := c.ask(ctx)
	if err == nil {
		c.last, c.told = time.Since(date), true // else it was as it was
	}
	return c.last, c.told
}
