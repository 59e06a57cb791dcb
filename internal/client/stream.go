package client

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/coder/websocket"

	"gbatch/internal/api"
)

// streamHold is how much longer than Timeout the opening of a stream may take:
// the controller gives the node that long to dial back.
const streamHold = 20 * time.Second

// Stream is an open two-way stream; see api.Frame for what goes over it. Send
// and Receive may be used at the same time, and Send by several goroutines.
type Stream struct {
	conn *websocket.Conn
	c    *Client // nil: of StreamOver

	mu     sync.Mutex
	room   int           // input that may be sent yet
	more   chan struct{} // closed and replaced when room grows
	closed bool
}

// Enter opens a stream of a kind (api.StreamExec, StreamForward, StreamAttach or
// StreamSave) to a rank of a running job. The caller sends the FrameStart of that
// kind first, and closes the stream. What an attached client leaves goes on.
func (c *Client) Enter(ctx context.Context, kind, id string, rank int) (*Stream, error) {
	return c.dialStream(ctx, idPath(api.PathJobStream[kind], id), query{}.number("rank", int64(rank)))
}

// DialStream is a node's side of stream id (api.StreamRequest.ID). A not_found
// error means that nobody waits for the stream any longer.
func (c *Client) DialStream(ctx context.Context, id string) (*Stream, error) {
	return c.dialStream(ctx, idPath(api.PathStream, id), nil)
}

// StreamOver is a client's side of a stream whose connection to the node is there already,
// as the controller has it.
func StreamOver(conn *websocket.Conn) *Stream {
	conn.SetReadLimit(api.MaxFrame)
	return &Stream{conn: conn, room: api.StreamWindow, more: make(chan struct{})}
}

func (c *Client) dialStream(ctx context.Context, path string, q query) (*Stream, error) {
	if err := c.open(); err != nil {
		return nil, err
	}
	dialCtx, cancel := context.WithTimeout(ctx, c.timeout()+streamHold)
	defer cancel()
	if len(q) > 0 {
		path += "?" + url.Values(q).Encode()
	}
	header := http.Header{}
	if err := c.sayWho(ctx, header, http.MethodGet, path, nil); err != nil {
		return nil, err
	}
	u := c.peer.base + path
	conn, resp, err := websocket.Dial(dialCtx, u, &websocket.DialOptions{HTTPClient: c.http, HTTPHeader: header})
	if err != nil {
		if resp != nil && resp.StatusCode != http.StatusSwitchingProtocols {
			return nil, answerError(resp)
		}
		if ctx.Err() == nil && dialCtx.Err() != nil {
			err = errors.New("no answer in time")
		}
		return nil, c.broken(ctx, err)
	}
	st := StreamOver(conn)
	st.c = c
	return st, nil
}

// broken is the error of a connection that went wrong.
func (s *Stream) broken(ctx context.Context, err error) error {
	if s.c != nil {
		return s.c.broken(ctx, err)
	}
	return cmp.Or(ctx.Err(), err)
}

// Send sends one frame. It waits while the other side does not read; a context
// that ends meanwhile breaks the stream.
func (s *Stream) Send(ctx context.Context, f api.Frame) error {
	err := s.conn.Write(ctx, websocket.MessageBinary, f.Append(make([]byte, 0, 1+len(f.Data))))
	if err != nil {
		return s.broken(ctx, err)
	}
	return nil
}

// SendInput sends input in frames, and waits while the other side has not
// taken enough of what was sent before.
func (s *Stream) SendInput(ctx context.Context, p []byte) error {
	for len(p) > 0 {
		n, err := s.take(ctx, min(len(p), api.FrameChunk))
		if err != nil {
			return err
		}
		if err := s.Send(ctx, api.Frame{Type: api.FrameInput, Data: p[:n]}); err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}

// take waits for room and takes up to n bytes of it.
func (s *Stream) take(ctx context.Context, n int) (int, error) {
	for {
		s.mu.Lock()
		got, more := min(n, s.room), s.more
		if got > 0 && !s.closed {
			s.room -= got
		}
		closed := s.closed
		s.mu.Unlock()
		switch {
		case closed:
			return 0, errStreamClosed
		case got > 0:
			return got, nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

var errStreamClosed = errors.New("the stream is closed")

// Receive returns the next frame; those that give room for input are heeded
// and passed over. One goroutine at a time calls it. A context that ends while
// it waits breaks the stream. An error other than the context's means that the
// other side has gone.
func (s *Stream) Receive(ctx context.Context) (api.Frame, error) {
	for {
		_, data, err := s.conn.Read(ctx)
		if err != nil {
			return api.Frame{}, s.broken(ctx, plainCloseError(err))
		}
		f, err := api.ParseFrame(data)
		if err != nil {
			return api.Frame{}, err
		}
		if f.Type != api.FrameWindow {
			return f, nil
		}
		s.mu.Lock()
		s.room = min(s.room+f.Count(), api.StreamWindow)
		close(s.more)
		s.more = make(chan struct{})
		s.mu.Unlock()
	}
}

func plainCloseError(err error) error {
	if websocket.CloseStatus(err) >= 0 {
		return errors.New("it closed the stream")
	}
	return errors.New("the connection broke off")
}

// Close breaks the stream off: the other side sees that we have gone. It may be
// called more than once.
func (s *Stream) Close() error {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.more)
		s.more = make(chan struct{})
	}
	s.mu.Unlock()
	_ = s.conn.CloseNow() // what fails there was closed before
	return nil
}
