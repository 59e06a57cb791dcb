// Package bounds is about how much, and how slowly, strangers may send.
package bounds

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

// smallBody is an answer that must be short.
type smallBody struct {
	io.ReadCloser
	left   int64
	cancel func()
	long   func() error
}

func (b *smallBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, b.long()
	}
	return n, err
}

func (b *smallBody) Close() error {
	err := b.ReadCloser.Close()
	b.cancel()
	return err
}

// Small bounds the answer to something that is short; long is the error of one that is not.
func Small(r io.ReadCloser, most int64, cancel func(), long func() error) io.ReadCloser {
	return &smallBody{ReadCloser: r, left: most, cancel: cancel, long: long}
}

// ErrStalled is why a download was ended.
var ErrStalled = errors.New("the download stalled")

// MinProgress is what a download must bring in the time in which it may stall. What comes
// drop by drop would hold what waits for it as long as what does not come.
const MinProgress = 64 << 10

// Stall ends a download that brings too little for the given time. The
// clock runs only while a Read waits, so a slow disk is not a stall.
type Stall struct {
	io.ReadCloser
	Limit   time.Duration
	Least   int // bytes that must come in it
	Stalled context.Context
	Cancel  context.CancelCauseFunc // of the request

	waited time.Duration // since so much had come the last time
	came   int
}

func (r *Stall) Read(p []byte) (int, error) {
	timer := time.AfterFunc(r.Limit-r.waited, func() { r.Cancel(ErrStalled) })
	began := time.Now()
	n, err := r.ReadCloser.Read(p)
	timer.Stop()
	r.waited += time.Since(began)
	if r.came += n; r.came >= r.Least {
		r.waited, r.came = 0, 0
	}
	if err != nil && err != io.EOF && errors.Is(context.Cause(r.Stalled), ErrStalled) {
		err = ErrStalled
	}
	return n, err
}

func (r *Stall) Close() error {
	err := r.ReadCloser.Close()
	r.Cancel(nil)
	return err
}

// Counted reports how many bytes were read in all, and refuses more than
// were announced.
type Counted struct {
	R       io.Reader
	N       int64 // read so far
	Max     int64
	TooLong error
	Seen    func(n int64)
}

func (c *Counted) Read(p []byte) (int, error) {
	n, err := c.R.Read(p)
	if c.N += int64(n); c.N > c.Max {
		return 0, c.TooLong
	}
	c.Seen(c.N)
	return n, err
}

// Room is what the store has given a pull of its disk and is not used yet.
type Room struct {
	Ask func(bytes, entries int64) (int64, int64, error)

	mu             sync.Mutex
	bytes, entries int64
}

// Take uses some of it.
func (r *Room) Take(bytes int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if bytes > r.bytes || r.entries < 1 {
		b, e, err := r.Ask(max(bytes-r.bytes, 0), 1)
		if err != nil {
			return err
		}
		r.bytes += b
		r.entries += e
	}
	r.bytes -= bytes
	r.entries--
	return nil
}
