package streams

import (
	"net/http"

	"github.com/coder/websocket"

	"gbatch/internal/api"
)

// maxStreams bounds the logs, two-way streams and streams of events that are open at once.
const maxStreams = 4096

// Begin counts a stream of a user in, and end out. Who has as many as are free, or
// more, gets no other one: one user can take half of them, two a third each, and
// there is always one for whoever has none. Wait waits for all to end; no new ones
// begin then.
func (s *Hub) Begin(user string) (end func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	has := s.byUser[user]
	switch {
	case s.closing:
		return nil, api.Errorf(api.CodeUnavailable, "the controller is being stopped").WithHint("try again later")
	case has >= maxStreams-s.open:
		return nil, api.Errorf(api.CodeUnavailable, "you have %d streams open at the controller, which has %d free of %d for all", has, maxStreams-s.open, maxStreams).
			WithHint("close some of your logs, shells and pages, or try again later")
	}
	s.open++
	s.byUser[user]++
	s.wg.Add(1)
	return func() { s.end(user) }, nil
}

// Count is how many streams clients have open.
func (s *Hub) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

func (s *Hub) end(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	if s.byUser[user]--; s.byUser[user] == 0 {
		delete(s.byUser, user)
	}
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
