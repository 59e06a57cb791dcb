package streams

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/coder/websocket"

	"gbatch/internal/api"
)

// How long a client may take to read why its stream ends, and to go: when the
// controller waits for it, and when nobody does.
const (
	partingTime = 2 * time.Second
	slowTime    = time.Minute
)

// splice copies messages both ways until one side goes or the server is
// stopped, and closes both connections. What goes over each is bounded by what
// the other takes: there is one buffer for each way.
func splice(ctx context.Context, client, node *websocket.Conn, name string) {
	// Its end would cut the connections in the middle of a message.
	live, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	ends := make(chan bool, 2)                                // each: whether it was the node
	go func() { ends <- !copyMessages(live, node, client) }() // ends with either connection; awaited below
	go func() { ends <- copyMessages(live, client, node) }()  // the same
	running := 2
	parting, patience, why := ctx, slowTime, ""
	select {
	case nodeGone := <-ends:
		running--
		if nodeGone {
			why = fmt.Sprintf("node %s broke the stream off: its daemon was restarted or cannot be reached; what ran in it is ended, the job is not", name)
		}
	case <-ctx.Done():
		parting, patience, why = live, partingTime, "the controller is being stopped, which ends this stream; the job goes on"
	}
	if why != "" {
		parting, done := context.WithTimeout(parting, patience)
		if client.Write(parting, websocket.MessageBinary, api.FailureFrame(125, why).Append(nil)) == nil {
			select { // to close before it has read would throw that away
			case <-ends:
				running--
			case <-parting.Done():
			}
		}
		done()
	}
	_ = client.CloseNow() // whatever is wrong with them: they are given up
	_ = node.CloseNow()
	for range running {
		<-ends
	}
}

// copyMessages copies messages until one of the connections ends, and says
// whether it was src.
func copyMessages(ctx context.Context, dst, src *websocket.Conn) (srcEnded bool) {
	buf := make([]byte, api.FrameChunk)
	for {
		kind, r, err := src.Reader(ctx)
		if err != nil {
			return true
		}
		w, err := dst.Writer(ctx, kind)
		if err != nil {
			return false
		}
		in := &failing{r: r}
		_, err = io.CopyBuffer(w, in, buf)
		// Closed whatever happened: else nothing more could be written.
		if closed := w.Close(); err != nil || closed != nil {
			return in.failed
		}
	}
}

// failing remembers that reading failed.
type failing struct {
	r      io.Reader
	failed bool
}

func (f *failing) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	f.failed = f.failed || err != nil && !errors.Is(err, io.EOF)
	return n, err
}
