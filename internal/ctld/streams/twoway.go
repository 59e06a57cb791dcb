package streams

import (
	"net/http"

	"github.com/coder/websocket"

	"gbatch/internal/api"
)

// maxStreams bounds the logs and two-way streams that are open at once.
const maxStreams = 4096

// Begin counts a stream in, and end out. wait waits for all to end; no
// new ones begin then.
func (s *Hub) Begin() (end func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing || s.open >= maxStreams {
		return nil, api.Errorf(api.CodeUnavailable, "the controller has %d streams open already, or is being stopped", s.open).
			WithHint("try again later")
	}
	s.open++
	s.wg.Add(1)
	return s.end, nil
}

// Count is how many streams clients have open.
func (s *Hub) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

func (s *Hub) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	s.wg.Done()
}

// Wait waits until all have ended, and lets no new ones begin.
func (s *Hub) Wait() {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	s.wg.Wait()
}

// Join handles a node's GET /v1/streams/{id}: its connection goes to the
// client that waits.
func (s *Hub) Join(w http.ResponseWriter, r *http.Request) error {
	st, err := s.claim(r)
	if err != nil {
		return err
	}
	if st.w != nil {
		st.done <- api.Errorf(api.CodeInternal, "the node does not speak this controller's protocol")
		return api.Errorf(api.CodeBadRequest, "this stream goes one way: send it by POST")
	}
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		st.done <- api.Errorf(api.CodeUnavailable, "the node's connection broke off").WithHint("try again")
		return nil // it has answered
	}
	conn.SetReadLimit(api.MaxFrame)
	s.mu.Lock()
	defer s.mu.Unlock()
	if st.left {
		go conn.CloseNow() // ends at once
		return nil
	}
	st.node = conn
	close(st.begun)
	return nil
}

// leave says that the client no longer waits, and closes what came for it.
func (s *Hub) leave(st *stream) {
	s.mu.Lock()
	st.left = true
	conn := st.node
	s.mu.Unlock()
	if conn != nil {
		_ = conn.CloseNow()
	}
}
