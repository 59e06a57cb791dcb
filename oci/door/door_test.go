package door

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"testing"
)

// TestTurn: who connects is handed to the program that runs then, or to none; and nobody is
// there when it is closed.
func TestTurn(t *testing.T) {
	t.Chdir(t.TempDir())
	at := make(chan string, 1)
	says := func(name string) func(*net.UnixConn) {
		return func(c *net.UnixConn) { at <- name; c.Close() }
	}
	d, err := Open(says("first"))
	if err != nil {
		t.Fatal(err)
	}
	enter := func() error {
		conn, err := Dial(".")
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = conn.Read(make([]byte, 1))
		return err
	}
	for _, name := range []string{"first", "", "second"} {
		switch name {
		case "":
			d.Turn(nil)
		case "second":
			d.Turn(says(name))
		}
		if err := enter(); !errors.Is(err, io.EOF) {
			t.Errorf("%q: %v", name, err)
		}
		if name == "" {
			continue
		}
		if got := <-at; got != name {
			t.Errorf("it came to %q, want %q", got, name)
		}
	}
	d.Close()
	if err := enter(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("closed: %v", err)
	}
}
