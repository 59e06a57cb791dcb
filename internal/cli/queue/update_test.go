package queue

import (
	"context"
	"strings"
	"testing"

	"gbatch/internal/cli"
)

// TestUpdateNothing: what cannot be given is said of the very value, and no controller is asked.
func TestUpdateNothing(t *testing.T) {
	some := func(n int) *int { return &n }
	for want, o := range map[string]Update{
		"nothing to change":               {},
		"--cpus 0: want 1 or more":        {CPUs: some(0)},
		"--cpus -2: want 1 or more":       {CPUs: some(-2), JobName: "x"},
		"--mem 0: a container needs some": {Mem: "0"},
		"--mem 0G: a container needs":     {Mem: "0G"},
		"write 64G for GiB":               {Mem: "64"},
		`--mem "x": want a number`:        {Mem: "x"},
		"T\": is too much":                {Mem: "99999999999999999999T"},
		"in two commands":                 {CPUs: some(2), JobName: "x"},
	} {
		if err := o.Run(context.Background(), &cli.App{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
}
