package controllers

import (
	"context"
	"strings"

	"gbatch/internal/api"
)

// compare asks the others about themselves, and logs what their files have otherwise than that of
// this controller, whenever that changes.
func (m *Members) compare(ctx context.Context) {
	list, err := m.Replicas.Members()
	if err != nil {
		return // asked again
	}
	own, told := m.Own(), map[string]Statement{}
	for _, x := range list {
		if x.Name == m.self {
			continue
		}
		s, err := m.Ask(ctx, x.Address)
		if err != nil {
			m.log.Debug("a controller did not say what its settings are", "name", x.Name, "error", err)
			m.mu.Lock()
			s = m.told[x.Name] // what it said before is more than nothing
			m.mu.Unlock()
		}
		told[x.Name] = s
	}
	m.mu.Lock()
	m.own, m.told = own, told
	m.mu.Unlock()
	all, err := m.list()
	if err != nil {
		return // asked again
	}
	for _, c := range all {
		m.say(c)
	}
}

// say logs what is odd about a controller's file, once.
func (m *Members) say(c api.Controller) {
	odd := strings.Join(c.Differs, ", ")
	if c.Unreadable != "" {
		odd = c.Unreadable
	}
	if m.differs[c.Name] == odd {
		return
	}
	m.differs[c.Name] = odd
	switch {
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
