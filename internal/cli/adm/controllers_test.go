package adm

import (
	"testing"

	"gbatch/internal/api"
)

// TestControllerState: what is told of a controller is the worst that is known of it.
func TestControllerState(t *testing.T) {
	for want, c := range map[string]api.Controller{
		"leads":                       {Leads: true, Counts: true, Answers: true},
		"follows":                     {Counts: true, Answers: true},
		"follows, 12 behind":          {Counts: true, Answers: true, Behind: 12},
		"joining, 900 behind":         {Answers: true, Behind: 900},
		"takes no records, 30 behind": {Counts: true, Answers: true, Behind: 30, Stuck: true},
		"does not answer":             {Counts: true, Behind: 30, Stuck: true},
	} {
		if got := controllerState(c); got != want {
			t.Errorf("%+v: %s, want %s", c, got, want)
		}
	}
}
