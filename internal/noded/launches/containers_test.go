package launches

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gbatch/internal/launch"
)

// TestContainers: a container gets the connection by which it was asked for, with all that
// follows; why there is none is told to whom that helps; and who has gone needs none.
func TestContainers(t *testing.T) {
	given, entered, gone := make(chan *os.File, 1), make(chan bool, 1), make(chan error, 1)
	begin := func(ctx context.Context, q launch.Container, commit func() (*os.File, error)) error {
		switch q.Image {
		case "refused":
			return Refused{"no such image"}
		case "later":
			return errors.New("the controller does not answer")
		case "slow":
			entered <- true
			<-ctx.Done()
			gone <- ctx.Err()
			return ctx.Err()
		}
		f, err := commit()
		given <- f
		return err
	}
	dir := t.TempDir()
	s, err := OpenContainers(dir, begin, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan struct{})
	go func() { s.Serve(ctx); close(served) }() // awaited below
	ask := func(line string) net.Conn {
		c, err := net.Dial("unix", filepath.Join(dir, filepath.Base(launch.Containers)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		_ = c.SetDeadline(time.Now().Add(patience))
		if _, err := io.WriteString(c, line+"\n"); err != nil {
			t.Fatal(err)
		}
		return c
	}
	for line, want := range map[string]string{`{"image":"refused"}`: `{"error":"no such image"}` + "\n", `{"image":"later"}`: "", "nonsense": ""} {
		if out, err := io.ReadAll(ask(line)); err != nil || string(out) != want {
			t.Errorf("%s: %q, %v, want %q", line, out, err, want)
		}
	}
	slow := ask(`{"image":"slow"}`)
	<-entered
	slow.Close()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("who has gone: %v", err)
	}
	c := ask(`{"image":"a"}`)
	f := <-given
	if _, err := io.WriteString(c, "more"); err != nil {
		t.Fatal(err)
	}
	program, err := net.FileConn(f)
	f.Close()
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	_ = program.SetDeadline(time.Now().Add(patience))
	got := make([]byte, 4)
	if _, err := io.ReadFull(program, got); err != nil || string(got) != "more" {
		t.Errorf("the program has %q, %v", got, err)
	}
	ask(`{"image":"slow"}`)
	<-entered
	stop()
	<-served // also of one that still waits
	<-gone
}
