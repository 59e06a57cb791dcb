package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"gbatch/internal/api"
)

// Retry is how requests that are safe to repeat are repeated while the
// controller does not answer or says that it is unavailable. The zero value
// never repeats.
type Retry struct {
	For    time.Duration                              // since the first failure; then that error is returned
	Notice func(err error)                            // told of the first failure of a request, nil: nobody
	Sleep  func(context.Context, time.Duration) error // nil: Sleep
}

// Backoff gives the pauses between tries: doubling from 100 ms to 5 s, each
// with up to half of it taken away at random, so that clients which lost the
// same controller do not come back at once. The zero value is ready.
type Backoff struct {
	Draw func(most time.Duration) time.Duration // at random, below most; nil: as the process does

	tries int
}

const (
	backoffMin = 100 * time.Millisecond
	backoffMax = 5 * time.Second
)

// electionTime is how long nobody is told that no controller leads: most often one does before.
const electionTime = time.Second

// Next is the pause before the next try.
func (b *Backoff) Next() time.Duration {
	d := backoffMax
	if b.tries < 6 {
		d = min(backoffMin<<b.tries, backoffMax)
	}
	b.tries++
	if b.Draw == nil {
		return d - rand.N(d/2)
	}
	return d - b.Draw(d/2)
}

// Reset makes the next pause short again, after a success.
func (b *Backoff) Reset() { b.tries = 0 }

// Sleep waits for d or until ctx ends, and then returns its error.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// referredError is of a request that only controllers have answered that do not lead.
type referredError struct{ error }

func (e referredError) Unwrap() error { return e.error }

// IsReferred says that each time that a request was answered it was by a controller that does not lead, and did nothing.
func IsReferred(err error) bool {
	_, ok := errors.AsType[referredError](err)
	return ok
}

// repeat runs try until it succeeds, fails for good, or For of pauses have passed.
func (r Retry) repeat(ctx context.Context, try func() error) error {
	sleep := r.Sleep
	if sleep == nil {
		sleep = Sleep
	}
	var pauses Backoff
	var slept time.Duration
	noticed := r.Notice == nil
	referred := true // each time
	for {
		err := try()
		if err == nil || !IsUnavailable(err) {
			return err
		}
		if IsCode(err, api.CodeElsewhere) {
			pauses.Reset() // another controller will lead in a moment
		} else {
			referred = false
		}
		pause := pauses.Next()
		if a, ok := errors.AsType[*answer](err); ok {
			pause = max(pause, a.after)
		}
		if slept+pause > r.For {
			if referred {
				err = referredError{err}
			}
			return err
		}
		if !noticed && (slept >= electionTime || !IsCode(err, api.CodeElsewhere)) {
			noticed = true
			r.Notice(err)
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
		slept += pause
	}
}
