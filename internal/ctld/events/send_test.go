package events

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

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

// TestSend: what was said goes out in one piece. The deadline for it is put off when half of
// it has passed, not with each piece.
func TestSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
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
		if w.writes != 1 || !w.Flushed {
			t.Errorf("%d writes, flushed %v; want one", w.writes, w.Flushed)
		}
		began := time.Now()
		for range 4 {
			time.Sleep(20 * time.Second)
			if err := errors.Join(e.say(api.EventPing, 4, e.desk.ping()), e.send()); err != nil {
				t.Fatal(err)
			}
		}
		var got []time.Duration
		for _, d := range w.deadlines {
			got = append(got, d.Sub(began))
		}
		if want := []time.Duration{time.Minute, 100 * time.Second, 140 * time.Second}; !slices.Equal(got, want) {
			t.Errorf("the deadlines are after %v, want %v", got, want)
		}
	})
}

// TestPieces: what streams say in is shared by all, and each sends its own alone; one that is silent holds nothing.
func TestPieces(t *testing.T) {
	streams := make([]*eventStream, 3)
	answers := make([]*httptest.ResponseRecorder, len(streams))
	for i := range streams {
		answers[i] = httptest.NewRecorder()
		w := &recorded{ResponseRecorder: answers[i]}
		streams[i] = &eventStream{desk: &Source{Patience: time.Minute}, w: w, rc: http.NewResponseController(w)}
	}
	var want [3]string
	for turn := range uint64(20) {
		for i, e := range streams {
			if err := e.say(fmt.Sprint("of", i), turn, strings.Repeat("x", 40*i)); err != nil {
				t.Fatal(err)
			}
			want[i] += fmt.Sprintf("id: %d\nevent: of%d\ndata: %q\n\n", turn, i, strings.Repeat("x", 40*i))
		}
		for i, e := range streams {
			if int(turn)%3 == i { // two say more before they send
				continue
			}
			if err := e.send(); err != nil || e.said != nil {
				t.Fatalf("stream %d holds %v, %v", i, e.said, err)
			}
		}
	}
	for i, e := range streams {
		if err := e.send(); err != nil || answers[i].Body.String() != want[i] {
			t.Errorf("stream %d: %v, sent\n%s\nwant\n%s", i, err, answers[i].Body, want[i])
		}
	}
}

// TestPatience: a stream that pings puts off its deadline in time.
func TestPatience(t *testing.T) {
	if slowest := time.Duration(float64(time.Second) / tellsAtLeast); Patience/2 <= api.PingEvery+slowest {
		t.Errorf("a deadline of %v may pass between pings of each %v", Patience, api.PingEvery)
	}
}

// TestPace: each stream tells more seldom, and lists are read more seldom, the more are open.
func TestPace(t *testing.T) {
	var s Source
	for _, tc := range []struct {
		open  int64
		tells rate.Limit
		every int64
	}{{0, 10, 1000}, {20, 10, 1000}, {50, 5, 2000}, {250, 1, 10_000}, {500, 0.5, 20_000}, {4096, 0.5, 20_000}} {
		s.open.Store(tc.open)
		if got := s.ping().EveryMS; got != tc.every || s.tells() != tc.tells {
			t.Errorf("%d streams: they tell %v times a second and read each %d ms, want %v and %d", tc.open, s.tells(), got, tc.tells, tc.every)
		}
	}
}
