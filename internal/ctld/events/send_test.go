package events

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"gbatch/internal/api"
)

// recorded is an answer that keeps what was asked of its connection.
type recorded struct {
	*httptest.ResponseRecorder
	writes    int
	deadlines []time.Time
}

func (r *recorded) Write(p []byte) (int, error) { r.writes++; return r.ResponseRecorder.Write(p) }

func (r *recorded) SetWriteDeadline(t time.Time) error {
	r.deadlines = append(r.deadlines, t)
	return nil
}

// TestSend: what was said goes out in one piece, with a deadline that is gone when it is
// out: over HTTP/2 one that passes ends a stream on which nothing happens.
func TestSend(t *testing.T) {
	w := &recorded{ResponseRecorder: httptest.NewRecorder()}
	e := &eventStream{desk: &Source{Patience: time.Minute}, w: w, rc: http.NewResponseController(w)}
	for id := range uint64(3) {
		if err := e.say(api.EventPing, id, e.desk.ping()); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // the second has nothing to send
		if err := e.send(); err != nil {
			t.Fatal(err)
		}
	}
	if w.writes != 1 || !w.Flushed || len(w.deadlines) != 2 || w.deadlines[0].IsZero() || !w.deadlines[1].IsZero() {
		t.Errorf("%d writes, flushed %v, deadlines %v; want one, and a deadline that is taken back", w.writes, w.Flushed, w.deadlines)
	}
}

// TestPace: each stream tells more seldom, and lists are read more seldom, the more are open.
func TestPace(t *testing.T) {
	var s Source
	for _, tc := range []struct{ open, tells, every int64 }{{0, 10, 1000}, {50, 10, 2000}, {250, 2, 6000}, {500, 1, 10_000}, {4096, 1, 10_000}} {
		s.open.Store(tc.open)
		if got := s.ping().EveryMS; got != tc.every || int64(s.tells()) != tc.tells {
			t.Errorf("%d streams: they tell %v times a second and read each %d ms, want %d and %d", tc.open, s.tells(), got, tc.tells, tc.every)
		}
	}
}
