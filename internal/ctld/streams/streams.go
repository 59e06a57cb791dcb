package streams

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/coder/websocket"

	"gbatch/internal/api"
	"gbatch/internal/ctld/access"
)

// streamWait is how long a node may take to dial back.
const streamWait = 15 * time.Second

// Hub joins what a client asked for with what a node dials back with. A
// stream's id is a secret that only its node learns.
type Hub struct {
	mu      sync.Mutex
	byID    map[string]*stream
	pending map[string][]api.StreamRequest // by node, not yet claimed
	open    int                            // streams that clients have
	byUser  map[string]int                 // the same, of each user that has any
	closing bool

	wg sync.WaitGroup // of those: the connections of two-way ones are no longer the server's
}

// stream is one client waiting. Of a log, the node's request goroutine copies
// into w while the client's waits on done. Of a two-way stream, the node's
// leaves its connection and the client's copies both ways; see splice.
type stream struct {
	w     http.ResponseWriter // nil: a two-way stream
	ctx   context.Context     // the client's
	begun chan struct{}       // closed when the node has dialled back
	done  chan error          // buffered: the outcome

	home string // the node; guarded by streams.mu, as told is
	sent bool   // the node was sent the request

	// Of a two-way stream, guarded by streams.mu.
	node *websocket.Conn
	left bool // the client no longer waits: nobody takes node
}

// NewHub has no streams.
func NewHub() *Hub {
	return &Hub{byID: map[string]*stream{}, pending: map[string][]api.StreamRequest{}, byUser: map[string]int{}}
}

// Take gives the requests that a node has not answered yet. They go out with
// each answer until it does, since an answer may be lost on its way; the node
// drops those that it knows.
func (s *Hub) Take(node string) []api.StreamRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.pending[node] {
		s.byID[r.ID].sent = true
	}
	return slices.Clone(s.pending[node])
}

// Waiting says whether there are requests that a node was not sent yet.
func (s *Hub) Waiting(node string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.pending[node], func(r api.StreamRequest) bool { return !s.byID[r.ID].sent })
}

// asked is what a node is asked for, and how long it may take to dial back.
type asked struct {
	node string
	req  api.StreamRequest
	wait time.Duration
	wake func()
}

// copy asks the node for a log and copies it to w until it ends. Nothing has
// been written to w if the error is an *api.Error.
func (s *Hub) copy(ctx context.Context, w http.ResponseWriter, a asked) error {
	st := &stream{w: w, ctx: ctx, begun: make(chan struct{}), done: make(chan error, 1)}
	a.req.ID = rand.Text()
	defer s.drop(a.req.ID)
	if err := s.await(st, a); err != nil {
		return err
	}
	// From here on the node's goroutine owns w: wait for it whatever happens.
	return <-st.done
}

// await asks the node and waits until it has dialled back.
func (s *Hub) await(st *stream, a asked) error {
	s.mu.Lock()
	st.home = a.node
	s.byID[a.req.ID] = st
	s.pending[a.node] = append(s.pending[a.node], a.req)
	s.mu.Unlock()
	a.wake()
	late := time.NewTimer(a.wait)
	defer late.Stop()
	var gaveUp error
	select {
	case <-st.begun:
		return nil
	case err := <-st.done:
		return st.over(err)
	case <-st.ctx.Done():
		gaveUp = st.ctx.Err()
	case <-late.C:
		gaveUp = api.Errorf(api.CodeUnavailable, "node %s does not answer, and the job is there", a.node).
			WithHint("see ginfo for the node's state; try again when it is up")
	}
	if s.drop(a.req.ID) != nil {
		return gaveUp
	}
	// The node has dialled back at this very moment, and may write already.
	select {
	case <-st.begun:
		return nil
	case err := <-st.done:
		return st.over(err)
	}
}

// over takes the outcome of a stream before anybody waits for it: if it has begun and is
// over, whoever waits for its end finds it.
func (st *stream) over(err error) error {
	if err == nil {
		st.done <- nil
	}
	return err
}

// drop forgets a stream and returns it, or nil if it is not known.
func (s *Hub) drop(id string) *stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dropLocked(id)
}

// dropFor does so for the node that was asked for it; to others it is unknown.
func (s *Hub) dropFor(id string, by access.Identity) *stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.byID[id]; st == nil || !by.MayNode(st.home) {
		return nil
	}
	return s.dropLocked(id)
}

func (s *Hub) dropLocked(id string) *stream {
	st := s.byID[id]
	if st == nil {
		return nil
	}
	delete(s.byID, id)
	left := slices.DeleteFunc(s.pending[st.home], func(r api.StreamRequest) bool { return r.ID == id })
	if s.pending[st.home] = left; len(left) == 0 {
		delete(s.pending, st.home)
	}
	return st
}

// claim hands a stream to the one node request that serves it.
func (s *Hub) claim(r *http.Request) (*stream, error) {
	st := s.dropFor(r.PathValue("id"), access.Caller(r.Context()))
	if st == nil {
		return nil, api.Errorf(api.CodeNotFound, "nobody waits for this stream any longer")
	}
	return st, nil
}

// Serve handles a node's POST /v1/streams/{id}: its body goes to the client.
func (s *Hub) Serve(w http.ResponseWriter, r *http.Request) error {
	st, err := s.claim(r)
	if err != nil {
		return err
	}
	if text := r.Header.Get(api.HeaderStreamError); text != "" {
		st.done <- refusedStream(st, text)
		return nil
	}
	if st.w == nil {
		st.done <- api.Errorf(api.CodeInternal, "the node does not speak this controller's protocol")
		return api.Errorf(api.CodeBadRequest, "this stream goes both ways: open it by GET as a WebSocket")
	}
	close(st.begun)
	st.w.Header().Set("Content-Type", "application/octet-stream")
	if o, err := strconv.ParseInt(r.Header.Get(api.HeaderOffset), 10, 64); err == nil {
		st.w.Header().Set(api.HeaderOffset, strconv.FormatInt(o, 10))
	}
	st.w.WriteHeader(http.StatusOK)
	// A client that goes must end the node's request too, or a quiet job's
	// follower would hold it for ever.
	node := http.NewResponseController(w)
	stop := context.AfterFunc(st.ctx, func() { _ = node.SetReadDeadline(time.Unix(1, 0)) })
	err = copyLog(st, r.Body)
	if !stop() && r.ProtoMajor == 1 { // the deadline may come later, and end all that the node asks next by this connection
		w.Header().Set("Connection", "close")
	}
	st.done <- err // the client is answered, and its context ends
	if err != nil {
		return api.Errorf(api.CodeNotFound, "the client has gone")
	}
	return nil
}

// refusedStream is what the client is told of a stream that its node cannot
// serve.
func refusedStream(st *stream, text string) *api.Error {
	if st.w == nil {
		return api.Errorf(api.CodeConflict, "%s", text)
	}
	return api.Errorf(api.CodeNotFound, "%s", text)
}

// copyLog copies the node's body to the client, flushing as it comes, until it
// ends or either side goes.
func copyLog(st *stream, body io.Reader) error {
	rc := http.NewResponseController(st.w)
	if err := rc.Flush(); err != nil {
		return err
	}
	buf := make([]byte, 32<<10)
	for {
		n, err := body.Read(buf)
		if n > 0 {
			if _, werr := st.w.Write(buf[:n]); werr != nil {
				return werr
			}
			if ferr := rc.Flush(); ferr != nil {
				return ferr
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
