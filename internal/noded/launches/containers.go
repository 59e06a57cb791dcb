package launches

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"gbatch/internal/launch"
	"gbatch/oci/message"
)

// Begin makes a container for tasks of a step. What may take long comes first; then it
// calls commit, and gives the file that this returns to the container's first process. An
// error that is a Refused is for the job's user; after any other the rank asks again.
type Begin func(ctx context.Context, q launch.Container, commit func() (*os.File, error)) error

// Containers is the socket by which a rank has containers made for steps in an image of
// their own. Each connection asks for one, and becomes that one's.
type Containers struct {
	listener *net.UnixListener
	begin    Begin
	log      *slog.Logger
	places   chan struct{} // one for each that is being made
	all      sync.WaitGroup
}

// Bounds of what one rank asks for.
const (
	maxMaking = 4  // more wait
	maxAsked  = 64 // connections; others are closed
	askTime   = 10 * time.Second
)

// OpenContainers listens in a rank's directory, where an earlier daemon may have listened.
func OpenContainers(dir string, begin Begin, log *slog.Logger) (*Containers, error) {
	l, err := listen(dir, filepath.Base(launch.Containers))
	if err != nil {
		return nil, err
	}
	return &Containers{listener: l, begin: begin, log: log, places: make(chan struct{}, maxMaking)}, nil
}

// Serve serves until the context ends.
func (c *Containers) Serve(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() { c.listener.Close() })
	defer stop()
	asked := make(chan struct{}, maxAsked)
	for {
		conn, err := c.listener.AcceptUnix()
		if err != nil {
			break
		}
		select {
		case asked <- struct{}{}:
			c.all.Go(func() { // ends with ctx, or the container's begin
				defer func() { <-asked }()
				c.serve(ctx, conn)
			})
		default:
			conn.Close()
		}
	}
	c.all.Wait()
}

func (c *Containers) serve(ctx context.Context, conn *net.UnixConn) {
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(askTime))
	line, files, err := message.NewReader(conn).Next()
	message.CloseAll(files)
	var q launch.Container
	if err != nil || json.Unmarshal(line, &q) != nil {
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	gone := make(chan struct{})
	go func() { // ends below, by the deadline; until then the rank has nothing to say
		defer close(gone)
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			cancel()
		}
	}()
	stopped := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stopped()
	select {
	case c.places <- struct{}{}:
		err = c.begin(ctx, q, func() (*os.File, error) { return commit(ctx, conn, gone) })
		<-c.places
	case <-ctx.Done():
		return
	}
	if refused := (Refused{}); errors.As(err, &refused) {
		_ = message.Send(conn, launch.ContainerReply{Error: refused.Text})
	} else if err != nil && ctx.Err() == nil {
		c.log.Warn("make a container for a step; the rank asks again", "error", err)
	}
}

// commit stops reading what is for the container's program, which gets the connection.
func commit(ctx context.Context, conn *net.UnixConn, gone <-chan struct{}) (*os.File, error) {
	_ = conn.SetReadDeadline(time.Unix(1, 0))
	<-gone
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return conn.File()
}
