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

// TestShortLists: a list of partitions is cut behind a name, and says how many are left out.
func TestShortLists(t *testing.T) {
	for list, want := range map[string]string{
		"": "", "gpu": "gpu", "gpu,long,short,night,day": "gpu,long,short,night,day", "gpu,long,short,night,days": "gpu,long,short,night,+1",
		"a-partition-with-a-long-name": "a-partition-with-a-long-name", "a-partition-with-a-long-name,b,c": "a-partition-with-a-long-name,+2",
	} {
		if got := short(list); got != want {
			t.Errorf("%s: %s, want %s", list, got, want)
		}
	}
}
