package noded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/oci"
)

// startWait is how long a client may take to say what it wants.
const startWait = 30 * time.Second

// partingTime is how long a client that does not read may hold up the daemon's
// end.
const partingTime = time.Second

// container is the shim of a rank that runs here.
func (a *Agent) container(id job.RankID) (*oci.Shim, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.ranks[id]
	switch {
	case r == nil || r.status.Exit != nil:
		return nil, fmt.Errorf("rank %d of job %d has ended", id.Rank, id.Job)
	case r.status.Phase != node.PhaseRunning:
		return nil, fmt.Errorf("rank %d of job %d is %s: it can be entered only while it runs", id.Rank, id.Job, r.status.Phase)
	}
	return r.shim, nil // set before the phase was
}

// serveTwoWay answers a request for a stream that goes both ways.
func (a *Agent) serveTwoWay(ctx context.Context, req api.StreamRequest) error {
	shim, err := a.container(req.Rank)
	if err != nil {
		return a.ctl.FailStream(ctx, req.ID, err.Error())
	}
	st, err := a.ctl.DialStream(ctx, req.ID)
	if err != nil {
		return err
	}
	defer st.Close()
	begin, cancel := context.WithTimeout(ctx, startWait)
	f, err := st.Receive(begin)
	cancel()
	if err != nil {
		return nil // it went without a word, as it may
	}
	switch {
	case f.Type != api.FrameStart:
		err = errors.New("the client began with something else than what to do; it may be newer than this node")
	case req.Kind == api.StreamForward:
		err = serveForward(ctx, st, shim, f.Data)
	case req.Kind == api.StreamAttach:
		err = serveAttach(ctx, st, shim, f.Data)
	default:
		err = serveExec(ctx, st, shim, f.Data)
	}
	if err != nil {
		refuse(ctx, st, err)
	}
	return nil
}

// refuse tells the client why its stream ends, and waits for it to go.
func refuse(ctx context.Context, st *client.Stream, err error) {
	out := api.StreamFailure{Message: err.Error(), Code: 125}
	var f *oci.Failure
	if errors.As(err, &f) {
		out.Message, out.Code = f.Message, f.Code()
	}
	err = st.Send(ctx, api.JSONFrame(api.FrameError, out))
	for err == nil { // to close before it has read would throw that away
		_, err = st.Receive(ctx)
	}
}

// inputQueue is input on its way to something that may not take it. It is as
// long as api.StreamWindow allows.
type inputQueue struct {
	mu    sync.Mutex
	buf   []byte
	held  int  // bytes that the client was not given back yet
	ended bool // no more comes
	wake  chan struct{}
}

func newInputQueue() *inputQueue { return &inputQueue{wake: make(chan struct{}, 1)} }

// put adds a copy of p, or says that there is no room that the client was
// given.
func (q *inputQueue) put(p []byte) bool {
	q.mu.Lock()
	ok := q.held+len(p) <= api.StreamWindow
	if ok {
		q.held += len(p)
		q.buf = append(q.buf, p...)
	}
	q.mu.Unlock()
	q.poke()
	return ok
}

func (q *inputQueue) end() {
	q.mu.Lock()
	q.ended = true
	q.mu.Unlock()
	q.poke()
}

func (q *inputQueue) poke() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take waits for input and takes all there is. Nothing means that no more
// comes.
func (q *inputQueue) take(ctx context.Context) ([]byte, error) {
	for {
		q.mu.Lock()
		buf, ended := q.buf, q.ended
		q.buf = nil
		q.mu.Unlock()
		if len(buf) > 0 || ended {
			return buf, nil
		}
		select {
		case <-q.wake:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// took gives n bytes of room back.
func (q *inputQueue) took(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.held -= n
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
