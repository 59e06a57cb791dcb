package client

import (
	"context"
	"io"

	"gbatch/internal/api"
)

// Duplex is something whose two directions end apart.
type Duplex interface {
	io.ReadWriteCloser
	CloseWrite() error
}

// Join copies both ways between the stream and conn until both have said their
// last, or conn takes no more. An error is an *api.StreamFailure, which the other
// side told, or means that it has gone. The caller closes both after it.
func (s *Stream) Join(ctx context.Context, conn Duplex) error {
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	sent := make(chan error, 1)
	go func() { sent <- s.SendFrom(ctx, conn) }() // ends with conn; awaited below
	err := s.receiveTo(ctx, conn)
	if err != nil {
		conn.Close()
		s.Close()
		<-sent
		return err
	}
	return <-sent
}

// SendFrom sends what r gives, and at its end, whatever that is, says that no more
// comes. An error is the stream's.
func (s *Stream) SendFrom(ctx context.Context, r io.Reader) error {
	buf := make([]byte, api.FrameChunk)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			if serr := s.SendInput(ctx, buf[:n]); serr != nil {
				return serr
			}
		}
		if err != nil { // an end, or a reset: the other side sees an end
			return s.Send(ctx, api.Frame{Type: api.FrameEndInput})
		}
	}
}

func (s *Stream) receiveTo(ctx context.Context, conn Duplex) error {
	for {
		f, err := s.Receive(ctx)
		if err != nil {
			return err
		}
		switch f.Type {
		case api.FrameOutput:
			if _, err := conn.Write(f.Data); err != nil {
				return nil // our side has gone, which is no fault
			}
		case api.FrameEndOutput, api.FrameExit:
			_ = conn.CloseWrite() // or it has gone
			return nil
		case api.FrameError:
			return f.Failure()
		}
	}
}
