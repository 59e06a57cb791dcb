package rank

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/noded/exporter"
	"gbatch/internal/noded/record"
	"gbatch/oci"
	"gbatch/oci/image"
	"gbatch/oci/result"
)

// justStarted is a rank whose container this daemon has started.
func justStarted(dir string, o api.RunOrder) *Rank {
	id, log := job.RankID{Job: 1}, slog.New(slog.DiscardHandler)
	r := &Rank{log: log, container: new(oci.Container), recipe: recipe{node: &Node{Counters: new(exporter.Counters), Changed: func() {}}, state: newState(id, log, func(time.Duration) {})}}
	r.image.Image = new(image.Image)
	r.order = order{id: id, at: id, dir: dir, RunOrder: o, rec: &record.Record{ID: id, Order: o}}
	return r
}

// TestLimitChanged: a limit that is changed while the program runs counts from its first instruction, as the one before it,
// also in the daemon that started it.
func TestLimitChanged(t *testing.T) {
	for name, tc := range map[string]struct{ limit, want time.Duration }{
		"longer":    {3 * time.Hour, 2 * time.Hour},
		"shorter":   {90 * time.Minute, 30 * time.Minute},
		"over":      {30 * time.Minute, 0},
		"as before": {2 * time.Hour, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := justStarted(t.TempDir(), api.RunOrder{LimitMS: (2 * time.Hour).Milliseconds()})
				w := newWatch(r)
				defer w.close()
				w.begun()
				time.Sleep(time.Hour)
				r.state.setLimit(tc.limit.Milliseconds())
				w.relimit()
				changed := time.Now()
				<-w.limit.C
				if got := time.Since(changed); got != tc.want {
					t.Errorf("it may run for %s more, want %s", got, tc.want)
				}
			})
		})
	}
}

// TestBegunAt: a daemon that takes over a rank of several programs knows when the first one began, also where the wall
// clock was set since.
func TestBegunAt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "1_0.1.0")
	r := justStarted(dir, api.RunOrder{Spec: job.Spec{Gbatch: &job.Gbatch{Before: []job.Before{{Name: "first"}}}}})
	if err := errors.Join(os.MkdirAll(r.order.containerDir(), 0o700), result.WriteBegun(r.order.containerDir())); err != nil {
		t.Fatal(err)
	}
	w := newWatch(r)
	defer w.close()
	w.begun()
	for name, set := range map[string]time.Duration{"not": 0, "ahead": 3 * time.Hour, "back": -3 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			mark := filepath.Join(r.order.containerDir(), result.FileBegun)
			if at := w.at.Add(-set); os.Chtimes(mark, at, at) != nil {
				t.Fatal("the mark's time cannot be set")
			}
			rec, err := record.Load(dir)
			if err != nil {
				t.Fatal(err)
			}
			next := justStarted(dir, rec.Order)
			next.image.Image, next.order.rec = nil, &rec
			if off := next.begunAt().Sub(w.at); off.Abs() > time.Minute {
				t.Errorf("it is taken to have begun %s later than it did", off)
			}
		})
	}
}
