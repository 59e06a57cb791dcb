package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"time"
)

// maxFailures in a row without a byte in between are the end of a transfer.
const maxFailures = 6

// errStalled says that nothing came for Client.Stall.
var errStalled = errors.New("no data came")

// retry calls try until it works, fails for good, or has failed too often. try
// says whether it came further than the one before.
func (c *Client) retry(ctx context.Context, try func(context.Context) (further bool, err error)) error {
	for failures := 0; ; {
		further, err := try(ctx)
		_, final := errors.AsType[*Error](err)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case final:
			return err
		case further:
			failures = 0
		}
		if failures++; failures >= maxFailures {
			return fail(Unreachable, "%s; given up after %d tries", plain(err), failures)
		}
		if err := pause(ctx, c.Pause<<(failures-1)); err != nil {
			return err
		}
	}
}

// pause waits about d, so that many who failed together do not come together.
func pause(ctx context.Context, d time.Duration) error {
	d = min(d, 30*time.Second)
	t := time.NewTimer(d/2 + rand.N(d/2+1))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// watched ends a try in which no byte moves for a time.
type watched struct {
	io.Reader
	timer *time.Timer
	stall time.Duration
	moved func(n int)
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if n > 0 {
		w.timer.Reset(w.stall)
		w.moved(n)
	}
	return n, err
}

// watch gives a context that ends when nothing was read for Client.Stall, and
// a maker of readers that count. The caller calls the last when it is done.
func (c *Client) watch(ctx context.Context, moved func(int)) (context.Context, func(io.Reader) io.Reader, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(c.Stall, func() { cancel(fmt.Errorf("%w for %s", errStalled, c.Stall)) })
	wrap := func(r io.Reader) io.Reader { return &watched{r, timer, c.Stall, moved} }
	return ctx, wrap, func() { timer.Stop(); cancel(nil) }
}

// because gives a stall as the reason of the error that it caused.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, errStalled) {
		return cause
	}
	return err
}

// plain takes from an error what is not for users: whole URLs with signatures
// in them, and addresses inside the site.
func plain(err error) string {
	for ue, ok := errors.AsType[*url.Error](err); ok; ue, ok = errors.AsType[*url.Error](err) {
		err = ue.Err
	}
	dns, isDNS := errors.AsType[*net.DNSError](err)
	op, isOp := errors.AsType[*net.OpError](err)
	switch {
	case isDNS && dns.IsNotFound:
		return "there is no host " + dns.Name
	case isOp && op.Op == "dial":
		return "cannot connect to the server: " + op.Err.Error()
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return "the server closed the connection too early"
	}
	return err.Error()
}
