package ctld

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/coder/websocket"

	"gbatch/internal/api"
	"gbatch/internal/node"
)

// maxStreams bounds the logs and two-way streams that are open at once.
const maxStreams = 4096

// jobStream opens a two-way stream to a running rank: PathJobExec and
// PathJobForward. Whoever may cancel a job may do this, for it is to act as
// the job.
func (s *Server) jobStream(w http.ResponseWriter, r *http.Request, kind string) {
	node, req, err := s.streamTo(r, kind)
	if err == nil {
		err = s.streams.begin()
	}
	var e *api.Error
	if err != nil {
		errors.As(s.fail(err), &e)
		writeError(w, e)
		return
	}
	defer s.streams.end()
	st := &stream{ctx: r.Context(), begun: make(chan struct{}), done: make(chan error, 1)}
	defer s.streams.leave(st)
	defer s.streams.drop(req.ID)
	if err := s.streams.await(st, node, req, func() { s.loop.nodes.notify(node) }); err != nil {
		if errors.As(err, &e) {
			writeError(w, e)
		}
		return // or the client has gone
	}
	if err := s.commit(r.Context(), fmt.Sprintf("job %d", req.Rank.Job), fmt.Sprintf("entered by %s, rank %d", kind, req.Rank.Rank)); err != nil {
		errors.As(s.fail(err), &e)
		writeError(w, e)
		return
	}
	client, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // it has answered
	}
	client.SetReadLimit(api.MaxFrame)
	splice(r.Context(), client, st.node, node)
}

// streamTo finds the rank that a client asks for, if they may have it.
func (s *Server) streamTo(r *http.Request, kind string) (host string, req api.StreamRequest, err error) {
	j, err := s.find(r.PathValue("id"))
	if err != nil {
		return "", req, err
	}
	if !s.mayTouch(caller(r.Context()), j.Owner) {
		return "", req, &api.Error{Status: 403, Code: api.CodeDenied, Message: fmt.Sprintf("job %d belongs to %s of project %s", j.Number, j.Owner.User, j.Owner.Project),
			Hint: "only its owner, the project's named members and operators may enter a job"}
	}
	rank := 0
	if text := r.URL.Query().Get("rank"); text != "" {
		if rank, err = strconv.Atoi(text); err != nil || rank < 0 {
			return "", req, &api.Error{Status: 400, Code: api.CodeBadRequest, Message: fmt.Sprintf("rank %q is no number from 0", text)}
		}
	}
	switch {
	case j.Tasks != nil:
		return "", req, arrayHasNone(j, "container", "gexec")
	case !j.State.Active() || j.Attempt == nil:
		return "", req, &api.Error{Status: 409, Code: api.CodeConflict, Message: fmt.Sprintf("job %s is %s: it can be entered only while it runs", j.ID(), j.State)}
	case rank >= len(j.Attempt.Ranks):
		return "", req, &api.Error{Status: 404, Code: api.CodeNotFound, Message: fmt.Sprintf("job %d has ranks 0 to %d", j.Number, len(j.Attempt.Ranks)-1)}
	case j.Attempt.Ranks[rank].Phase != node.PhaseRunning:
		return "", req, &api.Error{Status: 409, Code: api.CodeConflict, Message: fmt.Sprintf("rank %d of job %d is %s: it can be entered only while it runs", rank, j.Number, j.Attempt.Ranks[rank].Phase),
			Hint: "`gqueue show` says how far it is"}
	}
	req = api.StreamRequest{ID: rand.Text(), Kind: kind, Rank: j.RankID(rank)}
	return j.Attempt.Ranks[rank].Alloc.Node, req, nil
}

// begin counts a stream in, and end out. wait waits for all to end; no
// new ones begin then.
func (s *streams) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing || s.open >= maxStreams {
		return &api.Error{Status: 503, Code: api.CodeUnavailable, Message: fmt.Sprintf("the controller has %d streams open already, or is being stopped", s.open), Hint: "try again later"}
	}
	s.open++
	s.wg.Add(1)
	return nil
}

func (s *streams) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

func (s *streams) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	s.wg.Done()
}

func (s *streams) wait() {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	s.wg.Wait()
}

// join handles a node's GET /v1/streams/{id}: its connection goes to the
// client that waits.
func (s *streams) join(w http.ResponseWriter, r *http.Request) {
	st := s.claim(w, r)
	if st == nil {
		return
	}
	if st.w != nil {
		st.done <- &api.Error{Status: 500, Code: api.CodeInternal, Message: "the node does not speak this controller's protocol"}
		writeError(w, &api.Error{Status: 400, Code: api.CodeBadRequest, Message: "this stream goes one way: send it by POST"})
		return
	}
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		st.done <- &api.Error{Status: 502, Code: api.CodeUnavailable, Message: "the node's connection broke off", Hint: "try again"}
		return
	}
	conn.SetReadLimit(api.MaxFrame)
	s.mu.Lock()
	defer s.mu.Unlock()
	if st.left {
		go conn.CloseNow() // ends at once
		return
	}
	st.node = conn
	close(st.begun)
}

// leave says that the client no longer waits, and closes what came for it.
func (s *streams) leave(st *stream) {
	s.mu.Lock()
	st.left = true
	conn := st.node
	s.mu.Unlock()
	if conn != nil {
		_ = conn.CloseNow()
	}
}

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
