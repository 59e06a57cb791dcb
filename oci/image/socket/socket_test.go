package socket

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func pair(t *testing.T) (ours, theirs *net.UnixConn) {
	t.Helper()
	ours, f, err := Pair(unix.SOCK_SEQPACKET)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ours.Close() })
	c, err := Conn(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return ours, c.(*net.UnixConn)
}

// A packet arrives with the file that was sent with it, and one without a file
// brings none.
func TestFileComesWithItsPacket(t *testing.T) {
	ours, theirs := pair(t)
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("content"); err != nil {
		t.Fatal(err)
	}
	if err := Send(ours, "with", f); err != nil {
		t.Fatal(err)
	}
	if err := Send(ours, "without", nil); err != nil {
		t.Fatal(err)
	}
	var word string
	got, err := Receive(theirs, &word)
	if err != nil || word != "with" || got == nil {
		t.Fatalf("%q and file %v: %v", word, got, err)
	}
	defer got.Close()
	content := make([]byte, 7)
	if _, err := got.ReadAt(content, 0); err != nil || string(content) != "content" {
		t.Errorf("read %q: %v", content, err)
	}
	if got, err := Receive(theirs, &word); err != nil || word != "without" || got != nil {
		t.Errorf("%q and file %v: %v", word, got, err)
	}
	ours.Close()
	if _, err := Receive(theirs, &word); !errors.Is(err, io.EOF) {
		t.Errorf("%v, want the end", err)
	}
}

func TestPacketsAreBounded(t *testing.T) {
	ours, theirs := pair(t)
	for length, wants := range map[int]string{maxPacket: "", maxPacket + 1: "too long"} {
		word := strings.Repeat("x", length-2) // it is in quotes
		if err := Send(ours, word, nil); err != nil {
			t.Fatal(err)
		}
		var got string
		_, err := Receive(theirs, &got)
		if wants == "" && (err != nil || got != word) || wants != "" && (err == nil || !strings.Contains(err.Error(), wants)) {
			t.Errorf("%d bytes: %d and %v", length, len(got), err)
		}
	}
}
