package launches

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"
)

// FuzzRequests: whatever a job sends to its node's socket, it is answered or loses
// the connection, and nobody is left waiting.
func FuzzRequests(f *testing.F) {
	f.Add([]byte(`{"seq":3,"begin":{"key":"k","name":"n","tasks":2,"ranks":[0]}}` + "\n" + `{"seq":4,"end":{"step":1,"code":3}}` + "\n"))
	f.Add([]byte(`{"seq":-1}` + "\n"))
	f.Add([]byte("\n\n\x00\n"))
	f.Add(bytes.Repeat([]byte("[{}]"), 100))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := &Socket{recorder: noRecorder{}, log: slog.New(slog.DiscardHandler), places: make(chan struct{}, maxRequests), conns: map[*conn]bool{}}
		theirs, ours := net.Pipe()
		c := s.add(ours)
		done := make(chan struct{})
		go func() { s.serve(context.Background(), c); s.all.Wait(); close(done) }() // awaited below
		read := make(chan struct{})
		go func() { _, _ = io.Copy(io.Discard, theirs); close(read) }() // ends with the connection
		_ = theirs.SetWriteDeadline(time.Now().Add(patience))
		_, _ = theirs.Write(data)
		theirs.Close()
		<-done
		<-read
		if len(s.conns) != 0 || len(s.places) != 0 {
			t.Errorf("%d connections and %d requests are left", len(s.conns), len(s.places))
		}
	})
}
