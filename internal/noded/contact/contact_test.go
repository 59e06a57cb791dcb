package contact

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gbatch/internal/api"
)

// TestOrdering: of answers that overtake each other, only newer ones count.
func TestOrdering(t *testing.T) {
	changed := func(v uint64) *api.SyncResponse { return &api.SyncResponse{Version: v, Changed: true} }
	type answer struct {
		ticket ticket
		resp   *api.SyncResponse
		want   bool
	}
	tests := map[string][]answer{
		"in-order":      {{ticket{}, changed(5), true}, {ticket{seen: 5}, changed(6), true}},
		"overtaken":     {{ticket{}, changed(6), true}, {ticket{}, changed(5), false}},
		"same-twice":    {{ticket{}, changed(5), true}, {ticket{}, changed(5), false}},
		"nothing-new":   {{ticket{}, changed(5), true}, {ticket{seen: 5}, &api.SyncResponse{Version: 5}, false}},
		"counts-anew":   {{ticket{}, changed(90), true}, {ticket{seen: 90}, changed(2), true}, {ticket{seen: 2, epoch: 1}, changed(3), true}},
		"late-and-anew": {{ticket{}, changed(90), true}, {ticket{seen: 90}, changed(2), true}, {ticket{seen: 90}, changed(1), false}},
	}
	for name, answers := range tests {
		t.Run(name, func(t *testing.T) {
			var o ordering
			for i, a := range answers {
				if got := o.accept(a.ticket, a.resp); got != a.want {
					t.Errorf("answer %d: accepted %t, want %t", i+1, got, a.want)
				}
			}
		})
	}
}

// TestLease: the lease counts from when an answered request was sent, and
// over restarts of the daemon, but not of the machine.
func TestLease(t *testing.T) {
	file := filepath.Join(t.TempDir(), "contact")
	now := 90 * time.Second
	open := func(boot string) *lease {
		return openLease(file, boot, time.Minute, Machine{Steady: func() time.Duration { return now }}.own())
	}
	c := open("boot1")
	if err := c.answered(95*time.Second, 30*time.Second); err != nil {
		t.Fatal(err)
	}
	now = 110 * time.Second
	if left, silent := c.left(); left != 15*time.Second || silent != 15*time.Second {
		t.Errorf("left %s, silent %s", left, silent)
	}
	if err := c.answered(90*time.Second, 0); err != nil {
		t.Fatal(err)
	}
	if left, _ := c.left(); left != 15*time.Second {
		t.Errorf("an older answer moved the lease: left %s", left)
	}
	now = 130 * time.Second
	if left, _ := open("boot1").left(); left != -5*time.Second {
		t.Errorf("after a restart of the daemon: left %s", left)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Replace(whole, []byte(`"lastMs":95000`), []byte(`"lastMs":95001`), 1)
	if err := os.WriteFile(file, damaged, 0o600); err != nil || bytes.Equal(damaged, whole) {
		t.Fatalf("%v: %s", err, whole)
	}
	if left, _ := open("boot1").left(); left != 0 {
		t.Errorf("by a damaged file: left %s", left)
	}
	if err := os.WriteFile(file, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	c = open("boot2")
	if left, _ := c.left(); left != time.Minute {
		t.Errorf("after a restart of the machine: left %s", left)
	}
	if w := c.wait(); w != 20*time.Second {
		t.Errorf("polls wait %s", w)
	}
}
