package controllers

import (
	"context"
	"strings"
	"time"

	"gbatch/internal/api"
)

// compare asks the others about themselves, and logs what their files have otherwise than that of
// this controller, whenever that changes.
func (m *Members) compare(ctx context.Context) {
	list, err := m.Replicas.Members()
	if err != nil {
		return // asked again
	}
	own, told, mute := m.Own(), map[string]Statement{}, map[string]bool{}
	for _, x := range list {
		if x.Name == m.self {
			continue
		}
		s, err := m.Ask(ctx, x.Address)
		if err != nil {
			m.log.Debug("a controller did not say what its settings are", "name", x.Name, "error", err)
			mute[x.Name] = true
			m.mu.Lock()
			s = m.told[x.Name] // what it said before is more than nothing
			m.mu.Unlock()
		}
		told[x.Name] = s
	}
	m.mu.Lock()
	m.own, m.told, m.mute = own, told, mute
	m.follow(time.Now())
	m.mu.Unlock()
	all, err := m.list()
	if err != nil {
		return // asked again
	}
	for _, c := range all {
		m.say(c)
	}
}

// progress is how a controller takes the records of the one that leads.
type progress struct {
	applied uint64    // how far it had come when it said so last
	since   time.Time // when it had come there, or lacked nothing
	behind  uint64
	stuck   bool
}

// stuckAfter is how long a controller that lacks records takes none before that is told.
const stuckAfter = time.Minute

// follow looks how far the others have come by what they have just said.
func (m *Members) follow(now time.Time) {
	taken := map[string]progress{}
	for name, s := range m.told {
		p := m.taken[name]
		if s.Applied == 0 || s.Applied >= m.own.Applied || s.Applied != p.applied {
			p.since = now
		}
		p.applied, p.behind = s.Applied, 0
		if s.Applied > 0 && s.Applied < m.own.Applied {
			p.behind = m.own.Applied - s.Applied
		}
		p.stuck = now.Sub(p.since) >= stuckAfter
		taken[name] = p
	}
	m.taken = taken
}

// say logs what is odd about a controller, once.
func (m *Members) say(c api.Controller) {
	odd := strings.Join(c.Differs, ", ")
	if c.Unreadable != "" {
		odd = c.Unreadable
	}
	if c.Stuck {
		odd = "takes no records"
	}
	old := !c.Counts && c.Answers && c.Version == "" // see caughtUp
	if old {
		odd = "does not say what it has"
	}
	if m.differs[c.Name] == odd {
		return
	}
	m.differs[c.Name] = odd
	switch {
	case old:
		m.log.Warn("a controller that was added cannot say what it has, so it will not count: it runs a version from before 2026-11-23 18:47; remove it, empty its directory, and add it again with a later one", "name", c.Name)
	case c.Stuck:
		m.log.Warn("a controller lacks records and takes none: where its disk was emptied or a backup was put there, remove it, empty its directory, and add it again; else look at its log", "name", c.Name, "behind", c.Behind)
	case c.Unreadable != "":
		m.log.Warn("the configuration of a controller cannot be used: it could not lead", "name", c.Name, "error", odd)
	case odd != "":
		m.log.Warn("the configuration of a controller differs from that of the one that leads: make them alike, as whoever leads goes by its own", "name", c.Name, "settings", odd)
	default:
		m.log.Info("the configuration of a controller is in order again", "name", c.Name)
	}
}

// compared adds what a controller said of itself. Its settings are compared if it has the same
// version: another one may have other settings, and other defaults.
func (m *Members) compared(c *api.Controller) {
	s := m.told[c.Name]
	if c.Name == m.self {
		s = m.own
	}
	c.Version, c.Unreadable = s.Version, s.Unreadable
	if s.Settings != nil && m.own.Settings != nil && s.Version == m.own.Version {
		c.Differs = s.Settings.Differ(m.own.Settings)
	}
}

// Odd is for each controller how many of its settings differ from those of the one that leads; a file
// that cannot be used counts as one.
func (m *Members) Odd() map[string]int {
	out := map[string]int{}
	all, err := m.list()
	if err != nil {
		return out // told at the next scrape
	}
	for _, c := range all {
		out[c.Name] = len(c.Differs)
		if c.Unreadable != "" {
			out[c.Name]++
		}
	}
	return out
}
