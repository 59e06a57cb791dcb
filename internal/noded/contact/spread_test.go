package contact

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
)

// TestSpread: nodes that have lost the same controller come back over the time that it has named, once in each absence
// and in time for the lease.
func TestSpread(t *testing.T) {
	tests := map[string]struct {
		spread int64
		want   []string
		pause  time.Duration // the first
	}{
		"an older controller": {0, []string{"poll 50ms", "poll 100ms", "poll 50ms"}, 50 * time.Millisecond},
		"of 1000 nodes":       {4000, []string{"poll 50ms", "spread 3.5s", "poll 100ms", "poll 50ms", "spread 3.5s"}, 4050 * time.Millisecond},
		"beyond the lease":    {1 << 40, []string{"poll 50ms", "spread 13.125s", "poll 100ms", "poll 50ms", "spread 13.125s"}, 15050 * time.Millisecond},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var drawn []string
				file := filepath.Join(t.TempDir(), "contact")
				c := Open(Options{Name: "n1", File: file, Boot: "b", Lease: time.Minute, Node: &countedNode{}, Log: slog.New(slog.DiscardHandler),
					Controller: &replaying{first: &api.SyncResponse{LeaseMS: 60_000, SpreadMS: test.spread}},
					Machine: Machine{Draw: func(loop string, most time.Duration) time.Duration {
						drawn = append(drawn, fmt.Sprint(loop, " ", most))
						return most
					}}})
				if err := c.sync(t.Context(), 0); err != nil {
					t.Fatal(err)
				}
				pause, began := c.Machine.backoff("poll"), time.Now()
				c.away(t.Context(), errors.New("gone"), &pause)
				if took := time.Since(began); took != test.pause {
					t.Errorf("it waits for %v, want %v", took, test.pause)
				}
				c.away(t.Context(), errors.New("gone"), &pause)
				c.back()
				pause.Reset()
				c.away(t.Context(), errors.New("gone"), &pause)
				if diff := cmp.Diff(test.want, drawn); diff != "" {
					t.Errorf("drawn (-want +got):\n%s", diff)
				}
			})
		})
	}
}
