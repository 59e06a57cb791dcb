package pace

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestRead: as long is waited as the rate says, in few waits, and no more once there is nothing to wait for.
func TestRead(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var waited time.Duration
	waits := 0
	p := New(ctx, 8<<20, func(_ context.Context, d time.Duration) error { waited += d; waits++; return nil })
	for range 1 << 14 {
		if err := p.Read(1 << 10); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Read(1 << 40); err != nil {
		t.Fatal(err)
	}
	if want := 2*time.Second + (1<<17)*time.Second; waited != want || waits != 17 {
		t.Errorf("it waited %s in %d waits, want %s", waited, waits, want)
	}
	cancel()
	if err := p.Read(1); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
