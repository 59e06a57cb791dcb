package noded

import (
	"errors"
	"testing"

	"gbatch/internal/job"
	"gbatch/internal/noded/config"
)

// TestHealthIsTold: the controller hears at once that something keeps the node from taking jobs, and that it does no more.
func TestHealthIsTold(t *testing.T) {
	told := 0
	h := newHealth(&config.Config{StateDir: t.TempDir()})
	h.changed = func() { told++ }
	a, b := job.RankID{Job: 1}, job.RankID{Job: 2}
	for _, step := range []struct {
		what  string
		do    func()
		tells bool
	}{
		{"nothing is left of a rank", func() { h.Leftover(a, nil) }, false},
		{"something is", func() { h.Leftover(a, errors.New("busy")) }, true},
		{"it still is", func() { h.Leftover(a, errors.New("busy")) }, false},
		{"of another one, too", func() { h.Leftover(b, errors.New("busy")) }, true},
		{"the first is gone", func() { h.Leftover(a, nil) }, true},
		{"the second, too", func() { h.Leftover(b, nil) }, true},
		{"the network is lost", func() { h.networkError(errors.New("no rules")) }, true},
		{"it still is", func() { h.networkError(errors.New("no forwarding")) }, false},
		{"it is back", func() { h.networkError(nil) }, true},
		{"the disk can be written", h.tryState, false},
		{"it is gone", func() { h.dir += "/gone"; h.tryState() }, true},
	} {
		before := told
		if step.do(); (told > before) != step.tells {
			t.Errorf("%s: told: %t, want %t", step.what, told > before, step.tells)
		}
	}
}
