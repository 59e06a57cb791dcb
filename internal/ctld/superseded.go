package ctld

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"gbatch/internal/client"
	"gbatch/internal/ctld/site"
)

// A controller that begins the common log, or that alone counts in it, leads by its own vote. Where another one of the site leads,
// it is one whose disk was emptied or put back, and would answer nodes and users by what is left there.

// superseded is a file in the directory of the common log: another one led when this one alone counted.
const superseded = "superseded"

const (
	othersAnswer = 2 * time.Second // within this, each of them that runs
	othersElect  = 5 * time.Second // a leader, where they have none at the moment
)

// mayBegin refuses to begin the common log, or to go on alone, where another one of the site's controllers leads.
func (m *Member) mayBegin(ctx context.Context) error {
	mark := filepath.Join(m.cfg.ReplicaPath(), superseded)
	_, errMark := os.Stat(mark)
	if _, err := os.Stat(m.cfg.ReplicaPath()); err == nil && errMark != nil {
		return nil
	}
	if err := m.notSuperseded(ctx); err != nil {
		return err
	}
	if errMark == nil {
		return os.Remove(mark)
	}
	return nil
}

// mayLead refuses to lead where this member alone counts and another one leads, and notes it.
func (m *Member) mayLead(ctx context.Context) error {
	members, err := m.replica.Members()
	if err != nil || len(members) > 1 {
		return err
	}
	err = m.notSuperseded(ctx)
	if err != nil {
		err = errors.Join(err, os.WriteFile(filepath.Join(m.cfg.ReplicaPath(), superseded), nil, 0o600))
	}
	return err
}

// notSuperseded says which of the site's other controllers leads; nil: none is known to.
func (m *Member) notSuperseded(ctx context.Context) error {
	for began := time.Now(); ; {
		leader, at, some := m.leadsElsewhere(ctx)
		if leader != "" {
			return fmt.Errorf("controller %s leads, by what is said at %s, and %s has nothing that this controller and that one have in common: it was emptied or put back. On the machine of %[1]s, %[4]s. "+
				"If this one shall be the first of a new site, stop the others before", leader, at, m.cfg.Dir, addAgain(m.cfg))
		}
		if !some || time.Since(began) > othersElect || client.Sleep(ctx, othersAnswer/10) != nil {
			return ctx.Err()
		}
	}
}

// leadsElsewhere asks the other controllers which one leads; some: of these that answered, one waits for an election.
func (m *Member) leadsElsewhere(ctx context.Context) (leader, at string, some bool) {
	var mu sync.Mutex // of the results
	var all sync.WaitGroup
	for _, host := range strings.Split(m.cfg.Advertise, ",") {
		all.Go(func() {
			c := &client.Client{Address: "https://" + strings.TrimSpace(host) + "#" + m.pki.Pin(), Timeout: othersAnswer}
			defer c.Close()
			name, err := client.Leader(ctx, c)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil || name == m.cfg.Replica.Name:
			case name == "":
				some = true
			default:
				leader, at = name, host
			}
		})
	}
	all.Wait()
	return leader, at, some
}

// addAgain is how a controller that has nothing becomes one of several again.
func addAgain(c site.Config) string {
	return fmt.Sprintf("`gadm controllers remove %[1]s` and `gadm controllers add %[1]s %[2]s --to FILE`; here, with the directory empty, `gctld init --join FILE` (docs/controllers.md)",
		c.Replica.Name, c.Replica.Address())
}
