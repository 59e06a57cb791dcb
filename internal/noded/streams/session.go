package streams

import (
	"context"
	"io"
	"sync"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/client"
)

// session is a client and what it is joined with. Its goroutines end with the
// client, or with what the session's user closes after run.
type session struct {
	st     *client.Stream
	say    func(string) string // a text about a failure for the client
	input  *inputQueue
	copies sync.WaitGroup
}

func (s *Streams) session(st *client.Stream, req api.StreamRequest) *session {
	return &session{st: st, say: func(text string) string { return s.say(req, text) }, input: newInputQueue()}
}

// peer is the other end of a session.
type peer struct {
	in       io.Writer                            // takes the client's input
	endInput func()                               // nil: input has no end
	other    func(api.Frame)                      // takes frames that are no input; nil: there are none
	last     func(live context.Context) api.Frame // works to the end, and says what the client is told last
	stop     func()                               // the daemon goes
}

// partingTime is how long a client that does not read may hold up the daemon's
// end.
const partingTime = time.Second

// stoppingText is what clients hear when the daemon ends.
const stoppingText = "the node's daemon is being stopped, which ends this stream; the job goes on"

// run works until the peer has ended and the client was told, or the client or
// the daemon goes.
func (s *session) run(ctx context.Context, p peer) {
	live, gone := context.WithCancel(context.WithoutCancel(ctx)) // until the client has gone
	defer gone()
	s.join(live, gone, p)
	last := make(chan api.Frame, 1)
	s.copies.Go(func() { last <- p.last(live) }) // ends with the peer or the client
	parting := ctx
	var f api.Frame
	select {
	case <-live.Done():
		return
	case <-ctx.Done():
		p.stop()
		var cancel context.CancelFunc
		parting, cancel = context.WithTimeout(live, partingTime)
		defer cancel()
		f = api.FailureFrame(125, stoppingText)
	case f = <-last:
	}
	if s.st.Send(parting, f) != nil {
		return
	}
	select {
	case <-live.Done(): // it has read all, and gone
	case <-parting.Done():
	}
}

// join hands the client's frames to the peer until the client goes, and says
// so by gone.
func (s *session) join(live context.Context, gone func(), p peer) {
	s.copies.Go(func() { // ends with the client
		defer gone()
		s.receive(live, p)
	})
	end := p.endInput
	if end == nil {
		end = func() {}
	}
	s.copies.Go(func() { feed(live, s.st, s.input, p.in, end) }) // ends with the client, or when the peer is closed
}

// receive takes what the client sends until it goes.
func (s *session) receive(ctx context.Context, p peer) {
	for {
		f, err := s.st.Receive(ctx)
		switch {
		case err != nil:
			return
		case f.Type == api.FrameInput:
			if !s.input.put(f.Data) {
				return // it sends more than it may
			}
		case f.Type == api.FrameEndInput && p.endInput != nil:
			s.input.end()
		case p.other != nil:
			p.other(f)
		}
	}
}

// feed writes input to w and gives the client room for as much, until no more
// comes; then it calls end. What w does not take any longer is thrown away: it
// is the output that says how things end.
func feed(ctx context.Context, st *client.Stream, q *inputQueue, w io.Writer, end func()) {
	written := 0
	deaf := false
	for {
		buf, err := q.take(ctx)
		if err != nil {
			return
		}
		if len(buf) == 0 {
			end()
			return
		}
		for len(buf) > 0 {
			n := min(len(buf), api.FrameChunk)
			if !deaf {
				_, err := w.Write(buf[:n])
				deaf = err != nil
			}
			buf = buf[n:]
			if written += n; written < api.StreamWindow/4 {
				continue
			}
			q.took(written)
			if st.Send(ctx, api.CountFrame(api.FrameWindow, written)) != nil {
				return
			}
			written = 0
		}
	}
}
