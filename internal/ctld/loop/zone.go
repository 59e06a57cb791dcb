package loop

import (
	"sync"
	"time"
	_ "time/tzdata" // for machines that have none
)

// zones are those that were asked for: their rules are read once.
var zones sync.Map

// Zone is a zone by its name, as Europe/Brussels; empty is UTC.
func Zone(name string) (*time.Location, error) {
	if known, ok := zones.Load(name); ok {
		return known.(*time.Location), nil
	}
	zone, err := time.LoadLocation(name)
	if err == nil && name != "Local" {
		zones.Store(name, zone)
	}
	return zone, err
}

// ZoneOf is a zone that was found when the reservation was made; UTC if this machine
// no longer knows it.
func ZoneOf(name string) *time.Location {
	if zone, err := Zone(name); err == nil {
		return zone
	}
	return time.UTC
}
