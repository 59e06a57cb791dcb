package contact

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/noded/identity"
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
		"of 1000 nodes":       {4000, []string{"poll 50ms", "gather 4s", "spread 3.5s", "poll 100ms", "gather 4s", "gather 4s", "poll 50ms", "gather 4s", "spread 3.5s"}, 4050 * time.Millisecond},
		"beyond the lease":    {1 << 40, []string{"poll 50ms", "gather 15s", "spread 13.125s", "poll 100ms", "gather 15s", "gather 15s", "poll 50ms", "gather 15s", "spread 13.125s"}, 15050 * time.Millisecond},
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

// rushed is a controller that is away for a time, and then slow; it notes what is asked at the same time.
type rushed struct {
	Controller
	from, until time.Time // it is away

	mu         sync.Mutex
	open, most int      // requests; the most at the same time since it is back
	asked      []string // when and how, since it is back
}

func (r *rushed) NodeSync(ctx context.Context, _ string, req *api.SyncRequest) (*api.SyncResponse, error) {
	if now := time.Now(); now.After(r.from) && now.Before(r.until) {
		return nil, errors.New("gone")
	}
	r.mu.Lock()
	back := !time.Now().Before(r.until)
	if r.open++; back {
		r.most = max(r.most, r.open)
		r.asked = append(r.asked, fmt.Sprintf("%v held %t", time.Since(r.until).Round(100*time.Millisecond), req.WaitMS > 0))
	}
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.open--
	}()
	wait := time.Duration(req.WaitMS) * time.Millisecond
	if !back {
		wait = min(wait, time.Until(r.from)) + 1 // then it breaks off
	}
	if err := client.Sleep(ctx, max(wait, time.Second)); err != nil {
		return nil, err
	}
	return &api.SyncResponse{LeaseMS: 60_000, SpreadMS: 4000, Nonce: req.Nonce}, nil
}

// TestOneConnection: a node that comes back tells all that there is once. It makes one request at a time until the others have come, and then opens its
// poll; what it does not tell at once waits for that.
func TestOneConnection(t *testing.T) {
	for name, test := range map[string]struct {
		tells   bool // something when the controller has gone
		running bool // a rank runs since it is back
		ends    time.Duration
		want    []string
	}{
		"opens its poll":        {true, false, 15 * time.Second, []string{"300ms held false", "7.3s held true"}},
		"tells no beginning":    {true, true, 6200 * time.Millisecond, []string{"300ms held false"}},
		"has nothing to tell":   {false, false, 15 * time.Second, []string{"1.3s held false", "8.3s held true"}},
		"has nothing but begun": {false, true, 7200 * time.Millisecond, []string{"1.3s held false"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctl := &rushed{from: time.Now().Add(3 * time.Second), until: time.Now().Add(4 * time.Second)}
				c := Open(Options{Name: "n1", File: filepath.Join(t.TempDir(), "contact"), Boot: "b", Lease: time.Minute, Node: &countedNode{}, Log: slog.New(slog.DiscardHandler),
					Controller: ctl, Credential: &identity.Credential{}, Machine: Machine{Draw: func(_ string, most time.Duration) time.Duration { return most / 2 }}})
				ctx, cancel := context.WithCancel(t.Context())
				var running sync.WaitGroup
				running.Go(func() { c.Run(ctx) }) // ends with ctx
				time.Sleep(time.Until(ctl.from) + 200*time.Millisecond)
				if test.tells {
					c.Tell(AtOnce)
				}
				time.Sleep(2 * time.Second) // it has told that
				if test.running {
					c.Tell(WithinRunning)
				}
				time.Sleep(time.Until(ctl.until) + test.ends)
				cancel()
				running.Wait()
				if diff := cmp.Diff(test.want, ctl.asked); diff != "" {
					t.Errorf("asked since it is back (-want +got):\n%s", diff)
				}
				if ctl.most != 1 {
					t.Errorf("%d requests at the same time", ctl.most)
				}
			})
		})
	}
}
