package launches

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/launch"
)

// patience is how long the tests wait for what has to come.
const patience = time.Minute

type noRecorder struct{}

func (noRecorder) Begin(context.Context, launch.NodeBegin) (uint32, error) { return 7, nil }
func (noRecorder) End(context.Context, launch.NodeEnd) error               { return nil }

func open(t *testing.T) (*Socket, string) {
	dir := t.TempDir()
	s, err := Open(dir, noRecorder{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return s, filepath.Join(dir, fileSocket)
}

// TestCancelled: who asks is answered, and everybody hears which steps shall end,
// also who comes later.
func TestCancelled(t *testing.T) {
	s, path := open(t)
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan struct{})
	go func() { s.Serve(ctx); close(served) }() // awaited below
	dial := func() (net.Conn, func() launch.NodeReply) {
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(patience))
		in := bufio.NewScanner(c)
		return c, func() (r launch.NodeReply) {
			if !in.Scan() || json.Unmarshal(in.Bytes(), &r) != nil {
				t.Fatal("the node says nothing:", in.Err())
			}
			return r
		}
	}
	first, next := dial()
	defer first.Close()
	if _, err := io.WriteString(first, `{"seq":3,"begin":{}}`+"\n"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(launch.NodeReply{Seq: 3, Step: 7}, next()); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	s.Cancel([]uint32{1, 2})
	want := launch.NodeReply{Cancel: []uint32{1, 2}}
	if diff := cmp.Diff(want, next()); diff != "" {
		t.Errorf("cancelled (-want +got):\n%s", diff)
	}
	second, later := dial()
	defer second.Close()
	if diff := cmp.Diff(want, later()); diff != "" {
		t.Errorf("one who came later (-want +got):\n%s", diff)
	}
	stop()
	<-served
}

// deaf is a connection that nobody reads from, for as long as the test wants.
type deaf struct {
	net.Conn
	writes chan struct{} // has one for each write that has begun
	gone   chan struct{}
}

func (d deaf) Read([]byte) (int, error) { <-d.gone; return 0, io.EOF }

func (d deaf) Write([]byte) (int, error) {
	d.writes <- struct{}{}
	<-d.gone
	return 0, io.ErrClosedPipe
}

func (deaf) SetWriteDeadline(time.Time) error { return nil }
func (deaf) Close() error                     { return nil }

// TestDeafJob: a job that does not read what its socket says holds up nobody but
// itself: the daemon, which has all jobs to look after, does not wait for it.
func TestDeafJob(t *testing.T) {
	s, _ := open(t)
	defer s.listener.Close()
	d := deaf{writes: make(chan struct{}, 100), gone: make(chan struct{})}
	for range maxConns {
		c := s.add(d)
		s.all.Go(func() { s.serve(t.Context(), c) }) // awaited below
	}
	told := make(chan struct{})
	go func() { // awaited below
		defer close(told)
		s.Cancel([]uint32{1})
		<-d.writes // they are being told
		s.Cancel([]uint32{1, 2})
		s.Cancel(nil)
	}()
	select {
	case <-told:
	case <-time.After(patience):
		t.Error("the daemon waits for the job")
	}
	close(d.gone)
	<-told
	s.all.Wait()
}
