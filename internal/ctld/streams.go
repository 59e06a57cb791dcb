package ctld

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"gbatch/internal/api"
)

// streamWait is how long a node may take to dial back.
const streamWait = 15 * time.Second

// streams joins what a client asked for with what a node dials back with. A
// stream's id is a secret that only its node learns.
type streams struct {
	mu      sync.Mutex
	byID    map[string]*stream
	pending map[string][]api.StreamRequest // by node, not yet told
}

// stream is one client waiting. The node's request goroutine copies into w
// while the client's waits on done.
type stream struct {
	w     http.ResponseWriter
	ctx   context.Context // the client's
	begun chan struct{}   // closed when the node has dialled back
	done  chan error      // buffered: the outcome
}

func newStreams() *streams {
	return &streams{byID: map[string]*stream{}, pending: map[string][]api.StreamRequest{}}
}

// take gives the requests that a node has not been told yet.
func (s *streams) take(node string) []api.StreamRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pending[node]
	delete(s.pending, node)
	return p
}

func (s *streams) waiting(node string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pending[node]) > 0
}

// open asks the node for a stream and copies it to w until it ends. Nothing
// has been written to w if the error is an *api.Error.
func (s *streams) open(ctx context.Context, w http.ResponseWriter, node string, req api.StreamRequest, wake func()) error {
	req.ID = rand.Text()
	st := &stream{w: w, ctx: ctx, begun: make(chan struct{}), done: make(chan error, 1)}
	s.mu.Lock()
	s.byID[req.ID] = st
	s.pending[node] = append(s.pending[node], req)
	s.mu.Unlock()
	defer s.drop(node, req.ID)
	wake()
	late := time.NewTimer(streamWait)
	defer late.Stop()
	select {
	case <-st.begun:
	case err := <-st.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-late.C:
		return &api.Error{Status: 503, Code: api.CodeUnavailable, Message: "node " + node + " does not answer, and the log is there",
			Hint: "see ginfo for the node's state; try again when it is up"}
	}
	// From here on the node's goroutine owns w: wait for it whatever happens.
	return <-st.done
}

func (s *streams) drop(node, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byID, id)
	for i, r := range s.pending[node] {
		if r.ID == id {
			s.pending[node] = append(s.pending[node][:i:i], s.pending[node][i+1:]...)
		}
	}
	if len(s.pending[node]) == 0 {
		delete(s.pending, node)
	}
}

// claim hands a stream to the one node request that serves it.
func (s *streams) claim(id string) *stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.byID[id]
	delete(s.byID, id)
	return st
}

// serve handles a node's POST /v1/streams/{id}: its body goes to the client.
func (s *streams) serve(w http.ResponseWriter, r *http.Request) {
	if !caller(r.Context()).mayNode() {
		writeError(w, &api.Error{Status: 403, Code: api.CodeDenied, Message: "only a node answers streams"})
		return
	}
	st := s.claim(r.PathValue("id"))
	if st == nil {
		writeError(w, &api.Error{Status: 404, Code: api.CodeNotFound, Message: "nobody waits for this stream any longer"})
		return
	}
	if text := r.Header.Get(api.HeaderStreamError); text != "" {
		st.done <- &api.Error{Status: 404, Code: api.CodeNotFound, Message: text}
		return
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
	defer stop()
	err := splice(st, r.Body)
	st.done <- err
	if err != nil {
		writeError(w, &api.Error{Status: 410, Code: api.CodeNotFound, Message: "the client has gone"})
	}
}

// splice copies the node's body to the client, flushing as it comes, until it
// ends or either side goes.
func splice(st *stream, body io.Reader) error {
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
