package state

import "gbatch/sched"

// Window is an advance reservation, with when it comes again.
type Window struct {
	sched.Window
	Every *Every `json:"every,omitempty"` // nil: it comes once
}

// Every is when a reservation comes again. It begins and ends by the clock on the wall
// of its zone, so that it is longer or shorter when that is set.
type Every struct {
	Cron  string     `json:"cron"` // when it begins: minute, hour, day of the month, month, day of the week
	Zone  string     `json:"zone"` // as Europe/Brussels
	WallS int64      `json:"wallS"`
	Until sched.Time `json:"until,omitempty"` // it begins before this; 0: for ever
}
