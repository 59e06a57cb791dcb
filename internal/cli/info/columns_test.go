package info

import (
	"testing"

	"gbatch/internal/api"
)

func TestShortState(t *testing.T) {
	busy, full := api.Use{Free: 2, Total: 4}, api.Use{Total: 4}
	for want, r := range map[string]nodeRow{
		"idle": {state: "up", cpus: full}, "mix": {state: "up", jobs: 1, cpus: busy}, "alloc": {state: "up", jobs: 1, cpus: full}, "idle*": {state: "suspect"},
		"down*": {state: "lost", jobs: 1}, "drng": {state: "draining", jobs: 1, cpus: busy}, "drain": {state: "unhealthy"},
	} {
		if got := r.short(); got != want {
			t.Errorf("%+v: %s, want %s", r, got, want)
		}
	}
}
